"""The operations of one connection of the workload, drawn from a seed.

Each writer has its own random generator and its own keys, so its operations depend only on the
seed.

====================  ==============================================================================
customers             InnoDB, most string and date types, several charsets
orders, order_lines   InnoDB, numbers and times; a key of two columns
audit                 InnoDB without a primary key
counters              MyISAM: its rows are written immediately, and stay after a rollback
sessions              InnoDB, not captured: excluded by the source's options
====================  ==============================================================================
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

__all__ = ["TABLES", "UNWANTED", "WANTED", "Writer"]

WANTED = ("customers", "orders", "order_lines", "audit", "counters")
UNWANTED = "sessions"

TABLES = (
    """CREATE TABLE customers (
        id INT UNSIGNED NOT NULL PRIMARY KEY,
        email VARCHAR(120) CHARACTER SET utf8mb4 NOT NULL,
        name VARCHAR(60) CHARACTER SET latin1,
        code CHAR(6) CHARACTER SET ascii,
        tier ENUM('basic', 'silver', 'gold') CHARACTER SET utf8mb4 NOT NULL DEFAULT 'basic',
        wishes SET('mail', 'phone', 'post', 'none') CHARACTER SET utf8mb4,
        active BIT(1) NOT NULL,
        born DATE,
        joined DATETIME(3),
        changed TIMESTAMP(6) NULL,
        note TEXT CHARACTER SET utf8mb4
    ) ENGINE=InnoDB""",
    """CREATE TABLE orders (
        id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
        customer INT UNSIGNED NOT NULL,
        status TINYINT UNSIGNED NOT NULL,
        amount DECIMAL(14,2),
        rate DOUBLE,
        weight FLOAT,
        balance MEDIUMINT,
        placed DATETIME NOT NULL,
        took TIME(2),
        season YEAR
    ) ENGINE=InnoDB""",
    """CREATE TABLE order_lines (
        order_id BIGINT UNSIGNED NOT NULL,
        line SMALLINT NOT NULL,
        sku VARCHAR(20) CHARACTER SET utf8,
        quantity SMALLINT UNSIGNED,
        price DECIMAL(10,4) NOT NULL,
        digest BINARY(8),
        extra VARBINARY(40),
        picture BLOB,
        PRIMARY KEY (order_id, line)
    ) ENGINE=InnoDB""",
    """CREATE TABLE audit (
        writer TINYINT NOT NULL,
        number BIGINT NOT NULL,
        what VARCHAR(400) CHARACTER SET utf8mb4,
        KEY (writer, number)
    ) ENGINE=InnoDB""",
    """CREATE TABLE counters (
        name VARCHAR(40) CHARACTER SET utf8mb4 NOT NULL PRIMARY KEY,
        total BIGINT NOT NULL,
        bits BIT(20)
    ) ENGINE=MyISAM""",
    "CREATE TABLE sessions (id BIGINT PRIMARY KEY, data VARCHAR(200)) ENGINE=InnoDB",
)

_LETTERS = "abcdefghij ÄÖß éñ'\"\\\n\t{}[],:"
_ASTRAL = "\U0001f600\U00010348汉字"


class Writer:
    """The operations of one connection.

    Parameters
    ----------
    number : of this writer, from 0. The first one also rotates the binlog regularly.
    writers : number of all writers; each uses every `writers`-th key.

    Attributes
    ----------
    rotations, rollbacks : numbers of binlog rotations and of rollbacks by this writer.
    """

    def __init__(
        self, connection: Connection[Cursor], number: int, seed: int, writers: int
    ) -> None:
        self.rotations = self.rollbacks = 0
        self._cursor = connection.cursor()
        self._number = number
        self._stride = writers
        self._random = random.Random(f"{seed}/{number}")
        self._next = number + 1
        self._customers: list[int] = []
        self._orders: list[int] = []
        self._lines: list[tuple[int, int]] = []
        self._counters: list[str] = []
        self._operations_done = 0
        self._audited = self._audits_left = 0
        choices: list[tuple[int, Callable[[], int]]] = [
            (18, self._insert),
            (22, self._update),
            (7, self._delete),
            (4, self._update_key),
            (1, self._bulk_insert),
            (1, self._bulk_update),
            (1, self._bulk_delete),
            (12, self._multi_table),
            (3, self._rolled_back),
            (2, self._to_savepoint),
            (6, self._myisam),
            (2, self._myisam_in_rolled_back),
            (4, self._audit),
            (2, self._upsert),
            (10, self._unwanted),
        ]
        self._operations = [operation for _, operation in choices]
        self._weights = [weight for weight, _ in choices]
        self._execute("SET time_zone = '+00:00'")
        # Without gap locks, writers that change neighboring keys do not deadlock.
        self._execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        # With GTIDs, MySQL rejects changes of MyISAM tables inside a transaction.
        self._execute("SHOW GLOBAL VARIABLES LIKE 'enforce_gtid_consistency'")
        self._mixes_engines = ("enforce_gtid_consistency", "ON") not in self._cursor.fetchall()

    def operation(self) -> int:
        """Run the next operation; return the number of changed rows of captured tables."""
        self._operations_done += 1
        if self._number == 0 and self._operations_done % 150 == 0:
            self._execute("FLUSH BINARY LOGS")
            self.rotations += 1
        (operation,) = self._random.choices(self._operations, self._weights)
        return operation()

    # --- operations

    def _insert(self) -> int:
        if self._random.random() < 0.5:
            return self._insert_customers(1)
        return self._insert_orders(1)

    def _update(self) -> int:
        kind = self._random.randrange(3)
        if kind == 0 and self._customers:
            return self._changed(
                "UPDATE customers SET tier = %s, changed = %s, note = %s, active = %s"
                " WHERE id = %s",
                *self._customer()[3:4],
                self._moment(6),
                self._text(300),
                self._random.getrandbits(1),
                self._random.choice(self._customers),
            )
        if kind == 1 and self._lines:
            return self._changed(
                "UPDATE order_lines SET quantity = %s, extra = %s"
                " WHERE order_id = %s AND line = %s",
                self._random.choice([None, 0, 65535, self._random.randrange(65536)]),
                self._bytes(40),
                *self._random.choice(self._lines),
            )
        if self._orders:
            return self._changed(
                "UPDATE orders SET status = status ^ 1, amount = %s, took = %s WHERE id = %s",
                self._decimal(12, 2),
                self._time(),
                self._random.choice(self._orders),
            )
        return self._insert()

    def _delete(self) -> int:
        if self._random.random() < 0.4 and self._customers:
            return self._changed("DELETE FROM customers WHERE id = %s", self._pop(self._customers))
        if self._random.random() < 0.5 and self._lines:
            return self._changed(
                "DELETE FROM order_lines WHERE order_id = %s AND line = %s", *self._pop(self._lines)
            )
        if self._orders:
            return self._changed("DELETE FROM orders WHERE id = %s", self._pop(self._orders))
        return self._insert()

    def _update_key(self) -> int:
        if self._random.random() < 0.5 and self._customers:
            old, new = self._pop(self._customers), self._new_id()
            self._customers.append(new)
            return self._changed("UPDATE customers SET id = %s WHERE id = %s", new, old)
        if self._lines:
            order, line = self._pop(self._lines)
            moved = (self._new_id(), -line)
            self._lines.append(moved)
            return self._changed(
                "UPDATE order_lines SET order_id = %s, line = %s WHERE order_id = %s AND line = %s",
                *moved,
                order,
                line,
            )
        return self._insert()

    def _bulk_insert(self) -> int:
        rows = self._random.randrange(20, 300)
        if self._random.random() < 0.5:
            return self._insert_customers(rows)
        return self._insert_orders(rows)

    def _bulk_update(self) -> int:
        ids = self._some(self._orders)
        if not ids:
            return self._insert()
        return self._changed(
            "UPDATE orders SET status = 255 - status, rate = rate * 1.5 WHERE id IN %s", ids
        )

    def _bulk_delete(self) -> int:
        ids = self._some(self._customers)
        if not ids:
            return self._insert()
        self._customers = [key for key in self._customers if key not in set(ids)]
        return self._changed("DELETE FROM customers WHERE id IN %s", ids)

    def _multi_table(self) -> int:
        self._execute("BEGIN")
        done = self._insert_orders(1)
        order = self._orders[-1]
        done += self._insert_lines(order, self._random.randrange(1, 8))
        if self._customers:
            done += self._changed(
                "UPDATE customers SET changed = %s, name = %s WHERE id = %s",
                self._moment(6),
                self._name(),
                self._random.choice(self._customers),
            )
        self._execute("INSERT INTO sessions VALUES (%s, 'ordered')", self._new_id())
        if self._random.random() < 0.2:
            done += self._audit()
        self._execute("COMMIT")
        return done

    def _rolled_back(self) -> int:
        kept = self._customers[:], self._orders[:], self._lines[:]
        self._execute("BEGIN")
        self._insert_customers(self._random.randrange(1, 10))
        self._insert_orders(1)
        if kept[0]:
            self._execute("DELETE FROM customers WHERE id = %s", kept[0][-1])
        self._execute("ROLLBACK")
        self._customers, self._orders, self._lines = kept
        self.rollbacks += 1
        return 0

    def _to_savepoint(self) -> int:
        """Roll back to a savepoint: the rows after it are not in the binlog."""
        self._execute("BEGIN")
        done = self._insert_customers(2)
        kept = self._orders[:]
        self._execute("SAVEPOINT `half way`")
        self._insert_orders(3)
        self._execute("ROLLBACK TO SAVEPOINT `half way`")
        self._orders = kept
        done += self._insert_customers(1)
        self._execute("COMMIT")
        self.rollbacks += 1
        return done

    def _myisam(self) -> int:
        if len(self._counters) < 20 or self._random.random() < 0.1:
            name = f"{self._text(12)}/{self._new_id()}"[-40:]
            self._counters.append(name)
            return self._changed(
                "INSERT INTO counters VALUES (%s, %s, %s)",
                name,
                self._random.randrange(-(1 << 63), 1 << 63),
                self._random.choice([None, 0, (1 << 20) - 1, self._random.getrandbits(20)]),
            )
        if self._random.random() < 0.1:
            name = self._pop(self._counters)
            return self._changed("DELETE FROM counters WHERE name = %s", name)
        return self._changed(
            "UPDATE counters SET total = %s WHERE name IN %s",
            self._random.randrange(1 << 40),
            self._some(self._counters),
        )

    def _myisam_in_rolled_back(self) -> int:
        """Roll back after a change of MyISAM rows, which stay and are logged separately."""
        kept = self._customers[:]
        done = 0 if self._mixes_engines else self._myisam()
        self._execute("BEGIN")
        self._insert_customers(1)
        if self._mixes_engines:
            done = self._myisam()
        self._execute("ROLLBACK")
        self._customers = kept
        self.rollbacks += 1
        return done

    def _audit(self) -> int:
        if self._audits_left > 50 and self._random.random() < 0.3:
            done = self._changed(
                "DELETE FROM audit WHERE writer = %s ORDER BY number LIMIT %s",
                self._number,
                self._random.randrange(1, 20),
            )
            self._audits_left -= done
            return done
        rows = self._random.randrange(1, 4)
        self._audited += 1
        what = self._text(400)
        # Equal rows on purpose: a consumer can only count them.
        self._audits_left += rows
        return self._many("INSERT INTO audit VALUES", [(self._number, self._audited, what)] * rows)

    def _upsert(self) -> int:
        if not self._customers:
            return self._insert()
        known = self._random.random() < 0.5
        key = self._random.choice(self._customers) if known else self._new_id()
        if not known:
            self._customers.append(key)
        affected = self._changed(
            "INSERT INTO customers (id, email, active) VALUES (%s, %s, 1)"
            " ON DUPLICATE KEY UPDATE email = VALUES(email), active = NOT active",
            key,
            self._text(60),
        )
        # The server counts 2 for one row that was updated.
        return min(affected, 1)

    def _unwanted(self) -> int:
        ids = [self._new_id() for _ in range(self._random.randrange(1, 40))]
        self._many("INSERT INTO sessions VALUES", [(key, self._text(200)) for key in ids])
        self._execute("DELETE FROM sessions WHERE id IN %s", ids[::2])
        return 0

    # --- rows

    def _insert_customers(self, rows: int) -> int:
        ids = [self._new_id() for _ in range(rows)]
        self._customers += ids
        return self._many("INSERT INTO customers VALUES", [(i, *self._customer()) for i in ids])

    def _customer(self) -> tuple[Any, ...]:
        draw = self._random
        wishes = draw.sample(["mail", "phone", "post", "none"], draw.randrange(5))
        return (
            self._text(60),
            self._name(),
            draw.choice([None, "", "AB-12", f"{draw.randrange(10**6):06}"]),
            draw.choice(["basic", "silver", "gold"]),
            draw.choice([None, ",".join(wishes)]),
            draw.getrandbits(1),
            draw.choice([None, f"{draw.randrange(1000, 9999)}-02-{draw.randrange(1, 29):02}"]),
            draw.choice([None, self._moment(3)]),
            draw.choice([None, self._moment(6)]),
            draw.choice([None, self._text(300)]),
        )

    def _insert_orders(self, rows: int) -> int:
        draw = self._random
        ids = [self._new_id() for _ in range(rows)]
        self._orders += ids
        values = [
            (
                key,
                draw.getrandbits(32),
                draw.getrandbits(8),
                draw.choice([None, self._decimal(12, 2)]),
                draw.choice([None, draw.uniform(-1e6, 1e6)]),
                draw.choice([None, draw.randrange(-40_000, 40_000) / 4]),
                draw.choice([None, draw.randrange(-(1 << 23), 1 << 23)]),
                self._moment(0),
                draw.choice([None, self._time()]),
                draw.choice([None, 0, draw.randrange(1901, 2156)]),
            )
            for key in ids
        ]
        return self._many("INSERT INTO orders VALUES", values)

    def _insert_lines(self, order: int, lines: int) -> int:
        keys = [(order, line) for line in range(1, lines + 1)]
        self._lines += keys
        values = [
            (
                *key,
                self._random.choice([None, self._text(20, wide="汉字")]),
                self._random.getrandbits(16),
                self._decimal(6, 4),
                self._bytes(8),
                self._bytes(40),
                self._random.choice([None, self._bytes(500)]),
            )
            for key in keys
        ]
        return self._many("INSERT INTO order_lines VALUES", values)

    # --- values

    def _text(self, most: int, wide: str = _ASTRAL) -> str:
        length = self._random.randrange(most // 2)
        return "".join(self._random.choices(_LETTERS + wide, k=length))

    def _name(self) -> str:
        return "".join(self._random.choices("abcdeÄÖß€éñ ", k=self._random.randrange(30)))

    def _bytes(self, most: int) -> bytes:
        return self._random.randbytes(self._random.randrange(most + 1))

    def _decimal(self, integer: int, scale: int) -> str:
        digits = self._random.randrange(-(10 ** (integer + scale)) + 1, 10 ** (integer + scale))
        sign, digits = "-" if digits < 0 else "", abs(digits)
        return f"{sign}{digits // 10**scale}.{digits % 10**scale:0{scale}}"

    def _moment(self, fraction: int) -> str:
        draw = self._random
        text = (
            f"{draw.randrange(1971, 2038)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
            f" {draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}"
        )
        return f"{text}.{draw.randrange(10**fraction):0{fraction}}" if fraction else text

    def _time(self) -> str:
        draw = self._random
        sign = draw.choice(["", "-"])
        return f"{sign}{draw.randrange(838)}:{draw.randrange(60):02}:{draw.randrange(60):02}.25"

    # --- helpers

    def _new_id(self) -> int:
        key = self._next
        self._next += self._stride
        return key

    def _pop(self, keys: list[Any]) -> Any:
        at = self._random.randrange(len(keys))
        keys[at], keys[-1] = keys[-1], keys[at]
        return keys.pop()

    def _some(self, keys: list[Any]) -> list[Any]:
        return self._random.sample(keys, min(len(keys), self._random.randrange(1, 80)))

    def _execute(self, sql: str, *arguments: Any) -> int:
        return self._cursor.execute(sql, arguments or None)

    def _changed(self, sql: str, *arguments: Any) -> int:
        """Execute a statement; return how many rows it changed, as the server counts them."""
        return self._execute(sql, *arguments)

    def _many(self, insert: str, rows: list[tuple[Any, ...]]) -> int:
        """Execute one INSERT of several rows; return their number."""
        marks = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
        return self._execute(f"{insert} {marks}", *[value for row in rows for value in row])
