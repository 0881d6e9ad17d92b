"""A small shop on MySQL: its tables, and customers who buy, pay, cancel and receive parcels.

All random choices are made by one seeded generator.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from threading import Event, Thread

from pymysql.connections import Connection
from pymysql.constants import ER
from pymysql.cursors import Cursor
from pymysql.err import OperationalError

__all__ = ["COUPONS", "DATABASE", "READER", "SETUP", "TABLES", "TEARDOWN", "Shop"]

DATABASE = "shop_demo"
TABLES = ("customers", "products", "orders", "order_items")
# The mirror's account: what it may do is all that a mirror needs.
READER = "shop_reader"

SETUP = (
    f"CREATE DATABASE {DATABASE} DEFAULT CHARACTER SET utf8mb4",
    f"""CREATE TABLE {DATABASE}.customers (
        id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        name VARCHAR(60) NOT NULL,
        email VARCHAR(80) CHARACTER SET latin1 NOT NULL,
        tier ENUM('bronze', 'silver', 'gold') NOT NULL DEFAULT 'bronze',
        born DATE NULL,
        spent DECIMAL(12,2) NOT NULL DEFAULT 0)""",
    f"""CREATE TABLE {DATABASE}.products (
        sku CHAR(6) CHARACTER SET ascii PRIMARY KEY,
        title VARCHAR(60) NOT NULL,
        price DECIMAL(8,2) NOT NULL,
        stock SMALLINT UNSIGNED NOT NULL,
        labels SET('new', 'sale', 'eco', 'gift') NOT NULL DEFAULT '',
        kilos FLOAT NOT NULL)""",
    f"""CREATE TABLE {DATABASE}.orders (
        id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        customer_id INT UNSIGNED NOT NULL,
        status ENUM('placed', 'paid', 'shipped', 'cancelled') NOT NULL,
        total DECIMAL(10,2) NOT NULL,
        placed DATETIME(3) NOT NULL,
        changed TIMESTAMP(6) NULL,
        note VARCHAR(100) NULL)""",
    f"""CREATE TABLE {DATABASE}.order_items (
        order_id BIGINT UNSIGNED NOT NULL,
        line TINYINT UNSIGNED NOT NULL,
        sku CHAR(6) CHARACTER SET ascii NOT NULL,
        pieces SMALLINT UNSIGNED NOT NULL,
        price DECIMAL(8,2) NOT NULL,
        PRIMARY KEY (order_id, line))""",
    # Run with the password as its argument, so the other % is doubled.
    f"CREATE USER '{READER}'@'%%' IDENTIFIED BY %s",
    # PROCESS is for the first load.
    f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO '{READER}'@'%'",
    f"GRANT SELECT ON {DATABASE}.* TO '{READER}'@'%'",
)
TEARDOWN = (f"DROP DATABASE {DATABASE}", f"DROP USER '{READER}'@'%'")
# What becomes of the shop in the middle of the demo.
COUPONS = f"ALTER TABLE {DATABASE}.orders ADD COLUMN coupon VARCHAR(20) NULL"

_CUSTOMERS = (
    ("Zoë Müller", "zoe@example.com", "1988-02-29"),
    ("李小龍", "bruce@example.com", "1940-11-27"),
    ("Ada 🚀 Lovelace", "ada@example.com", "1815-12-10"),
    ("Søren Ångström", "søren@example.com", None),
    ("Ольга Петрова", "olga@example.com", "2001-07-04"),
)
_PRODUCTS = (
    ("TEA001", "Darjeeling 🍵 250 g", "8.90", 120, "eco", 0.25),
    ("MUG042", 'Mug "Monday"', "12.50", 60, "gift", 0.4),
    ("BIK007", "Vélo pliant", "649.00", 8, "new,eco", 11.3),
    ("LMP100", "Lamp, 3 000 K", "39.95", 25, "", 1.2),
    ("GFT999", "Surprise box 🎁", "25.00", 40, "gift,sale", 0.75),
)
_NOTES = (None, None, "please ring twice", "🎂 for her birthday", "leave it with Søren's café")
_CODES = (None, "SPRING", "ЛЕТО-10", "中秋")
_PAST_ORDERS = 20_000
# What an ALTER TABLE beside a transaction can cause: a deadlock, or a table that is newer than the
# transaction's snapshot.
_MUST_ROLL_BACK = (ER.LOCK_DEADLOCK, ER.TABLE_DEF_CHANGED)


class Shop:
    """Transactions of the shop, in a separate thread.

    Parameters
    ----------
    connect : returns a new connection to the server, without autocommit.
    seed : of all random choices.
    pause : approximate seconds between two transactions.

    Attributes
    ----------
    transactions, rolled_back : number of committed transactions, and of those that changed rows
        and were rolled back.
    error : the exception that ended the transactions early, if any.
    """

    def __init__(
        self, connect: Callable[[], Connection[Cursor]], *, seed: int, pause: float
    ) -> None:
        self.transactions = 0
        self.rolled_back = 0
        self.error: Exception | None = None
        self._connect = connect
        self._random = random.Random(seed)
        self._pause = pause
        self._has_coupons = False
        self._closing = Event()
        self._thread = Thread(target=self._work, name="shop", daemon=True)

    def stock(self) -> None:
        """Insert the customers, products and orders that exist before the demo."""
        with self._connect() as connection, connection.cursor() as cursor:
            self._fill(cursor)
            connection.commit()

    def open(self) -> None:
        """Start the transactions."""
        self._thread.start()

    def take_coupons(self) -> None:
        """Add the column of coupons to the orders while customers buy; later orders use it."""
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(COUPONS)
        self._has_coupons = True

    def sell_the_last(self) -> None:
        """Insert one more order after the end of the transactions."""
        with self._connect() as connection, connection.cursor() as cursor:
            self._order(cursor)
            connection.commit()
        self.transactions += 1

    def close(self) -> None:
        """Finish the transaction in progress and stop."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        actions = (
            (self._order, 5),
            (self._pay, 4),
            (self._ship, 2),
            (self._cancel, 1),
            (self._reprice, 1),
            (self._change_mind, 1),
        )
        choices = [action for action, weight in actions for _ in range(weight)]
        try:
            with self._connect() as connection, connection.cursor() as cursor:
                while not self._closing.wait(self._pause * self._random.uniform(0.5, 1.5)):
                    if self._done(self._random.choice(choices), cursor):
                        connection.commit()
                        self.transactions += 1
                    else:
                        connection.rollback()
        except Exception as error:  # noqa: BLE001 (the main thread reports it)
            self.error = error

    def _done(self, action: Callable[[Cursor], bool], cursor: Cursor) -> bool:
        """Run a transaction; return whether to commit. One that an ALTER hinders is rolled back."""
        try:
            return action(cursor)
        except OperationalError as error:
            if error.args[0] not in _MUST_ROLL_BACK:
                raise
            return False

    def _fill(self, cursor: Cursor) -> None:
        cursor.executemany(
            f"INSERT INTO {DATABASE}.customers (name, email, born) VALUES (%s, %s, %s)", _CUSTOMERS
        )
        cursor.executemany(
            f"INSERT INTO {DATABASE}.products VALUES (%s, %s, %s, %s, %s, %s)", _PRODUCTS
        )
        past = []
        for number in range(1, _PAST_ORDERS + 1):
            sku, _, price, *_ = self._random.choice(_PRODUCTS)
            pieces = self._random.randint(1, 3)
            past.append((number, self._customer(), sku, pieces, price, pieces * Decimal(price)))
        cursor.executemany(
            f"INSERT INTO {DATABASE}.orders (id, customer_id, status, total, placed)"
            " VALUES (%s, %s, 'shipped', %s, '2024-02-29 12:34:56.789')",
            [(number, customer, total) for number, customer, *_, total in past],
        )
        cursor.executemany(
            f"INSERT INTO {DATABASE}.order_items VALUES (%s, 1, %s, %s, %s)",
            [(number, *item) for number, _, *item, _ in past],
        )

    def _customer(self) -> int:
        return self._random.randint(1, len(_CUSTOMERS))

    # Each is one transaction; it returns whether to commit.

    def _order(self, cursor: Cursor) -> bool:
        """Insert an order and its items and reduce the stock, in one transaction."""
        cursor.execute(f"SELECT sku, price FROM {DATABASE}.products WHERE stock >= 3")
        products = list(cursor.fetchall())
        basket = [
            (sku, self._random.randint(1, 3), price)
            for sku, price in self._random.sample(products, min(len(products), self._items()))
        ]
        total = sum((pieces * price for _, pieces, price in basket), Decimal(0))
        cursor.execute(
            f"INSERT INTO {DATABASE}.orders (customer_id, status, total, placed, changed, note)"
            " VALUES (%s, 'placed', %s, NOW(3), NOW(6), %s)",
            (self._customer(), total, self._random.choice(_NOTES)),
        )
        order = cursor.lastrowid
        if self._has_coupons:
            cursor.execute(
                f"UPDATE {DATABASE}.orders SET coupon = %s WHERE id = %s",
                (self._random.choice(_CODES), order),
            )
        # The rows of one statement share an event.
        cursor.executemany(
            f"INSERT INTO {DATABASE}.order_items VALUES (%s, %s, %s, %s, %s)",
            [(order, line, *item) for line, item in enumerate(basket, 1)],
        )
        for sku, pieces, _ in basket:
            cursor.execute(
                f"UPDATE {DATABASE}.products SET stock = stock - %s WHERE sku = %s", (pieces, sku)
            )
        return bool(basket)

    def _items(self) -> int:
        return self._random.choice((1, 1, 2, 3))

    def _pay(self, cursor: Cursor) -> bool:
        order = self._an_order(cursor, "placed")
        if order is None:
            return False
        number, customer, total = order
        self._set_status(cursor, number, "paid")
        cursor.execute(
            f"UPDATE {DATABASE}.customers SET tier = CASE WHEN spent + %s >= 1000 THEN 'gold'"
            " WHEN spent + %s >= 100 THEN 'silver' ELSE tier END, spent = spent + %s WHERE id = %s",
            (total, total, total, customer),
        )
        return True

    def _ship(self, cursor: Cursor) -> bool:
        order = self._an_order(cursor, "paid")
        if order is None:
            return False
        self._set_status(cursor, order[0], "shipped")
        return True

    def _cancel(self, cursor: Cursor) -> bool:
        """Return the items of an order to the stock and delete them."""
        order = self._an_order(cursor, "placed")
        if order is None:
            return False
        cursor.execute(
            f"UPDATE {DATABASE}.products p JOIN {DATABASE}.order_items i USING (sku)"
            " SET p.stock = p.stock + i.pieces WHERE i.order_id = %s",
            (order[0],),
        )
        cursor.execute(f"DELETE FROM {DATABASE}.order_items WHERE order_id = %s", (order[0],))
        self._set_status(cursor, order[0], "cancelled")
        return True

    def _reprice(self, cursor: Cursor) -> bool:
        """Begin or end a sale and add stock: several rows in one statement."""
        factor = self._random.choice(("0.90", "0.95", "1.05", "1.10"))
        labels = "labels | 2" if factor < "1" else "labels & ~2"  # the bit of 'sale'
        chosen = self._random.sample([row[0] for row in _PRODUCTS], 2)
        cursor.execute(
            f"UPDATE {DATABASE}.products SET price = ROUND(price * {factor}, 2), labels = {labels},"
            " stock = stock + 12 WHERE sku IN (%s, %s)",
            chosen,
        )
        return True

    def _change_mind(self, cursor: Cursor) -> bool:
        """Insert an order that is rolled back."""
        self.rolled_back += self._order(cursor)
        return False

    def _an_order(self, cursor: Cursor, status: str) -> tuple[int, int, Decimal] | None:
        cursor.execute(
            f"SELECT id, customer_id, total FROM {DATABASE}.orders WHERE status = %s"
            " ORDER BY id LIMIT 1",
            (status,),
        )
        row: tuple[int, int, Decimal] | None = cursor.fetchone()
        return row

    def _set_status(self, cursor: Cursor, order: int, status: str) -> None:
        cursor.execute(
            f"UPDATE {DATABASE}.orders SET status = %s, changed = NOW(6) WHERE id = %s",
            (status, order),
        )
