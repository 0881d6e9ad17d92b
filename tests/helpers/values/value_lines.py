"""(type, SQL literal), one per line: values that live tests write and compare with SELECT.

`` <- `` separates type and literal. The literals are written in sql_mode '', so that zero dates,
invalid labels and truncated numbers are stored, as by old applications. ENUM and SET labels stay
within U+FFFF: information_schema shows no other characters (the recorded binlogs contain them).
"""

from __future__ import annotations

__all__ = ["LINES"]

# fmt: off
_LINES = r"""
TINYINT <- -128
TINYINT <- 127
TINYINT <- 0
TINYINT <- -1
TINYINT <- 1
TINYINT <- 126
TINYINT <- NULL
TINYINT UNSIGNED <- 0
TINYINT UNSIGNED <- 1
TINYINT UNSIGNED <- 128
TINYINT UNSIGNED <- 127
TINYINT UNSIGNED <- 255
TINYINT UNSIGNED <- NULL
SMALLINT <- -32768
SMALLINT <- 32767
SMALLINT <- 0
SMALLINT <- -1
SMALLINT <- 1
SMALLINT <- 32766
SMALLINT <- NULL
SMALLINT UNSIGNED <- 0
SMALLINT UNSIGNED <- 1
SMALLINT UNSIGNED <- 32768
SMALLINT UNSIGNED <- 32767
SMALLINT UNSIGNED <- 65535
SMALLINT UNSIGNED <- NULL
MEDIUMINT <- -8388608
MEDIUMINT <- 8388607
MEDIUMINT <- 0
MEDIUMINT <- -1
MEDIUMINT <- 1
MEDIUMINT <- 8388606
MEDIUMINT <- NULL
MEDIUMINT UNSIGNED <- 0
MEDIUMINT UNSIGNED <- 1
MEDIUMINT UNSIGNED <- 8388608
MEDIUMINT UNSIGNED <- 8388607
MEDIUMINT UNSIGNED <- 16777215
MEDIUMINT UNSIGNED <- NULL
INT <- -2147483648
INT <- 2147483647
INT <- 0
INT <- -1
INT <- 1
INT <- 2147483646
INT <- NULL
INT UNSIGNED <- 0
INT UNSIGNED <- 1
INT UNSIGNED <- 2147483648
INT UNSIGNED <- 2147483647
INT UNSIGNED <- 4294967295
INT UNSIGNED <- NULL
BIGINT <- -9223372036854775808
BIGINT <- 9223372036854775807
BIGINT <- 0
BIGINT <- -1
BIGINT <- 1
BIGINT <- 9223372036854775806
BIGINT <- NULL
BIGINT UNSIGNED <- 0
BIGINT UNSIGNED <- 1
BIGINT UNSIGNED <- 9223372036854775808
BIGINT UNSIGNED <- 9223372036854775807
BIGINT UNSIGNED <- 18446744073709551615
BIGINT UNSIGNED <- NULL
TINYINT(1) <- 0
TINYINT(1) <- 1
TINYINT(1) <- -5
TINYINT(1) <- 127
INT(8) UNSIGNED ZEROFILL <- 0
INT(8) UNSIGNED ZEROFILL <- 807261
INT(8) UNSIGNED ZEROFILL <- 4294967295
BOOL <- TRUE
BOOL <- FALSE
FLOAT <- 0
FLOAT <- -0.0
FLOAT <- 1
FLOAT <- 0.1
FLOAT <- -0.1
FLOAT <- 1e10
FLOAT <- 3.40282e38
FLOAT <- -3.40282e38
FLOAT <- 1.17549e-38
FLOAT <- 1e-45
FLOAT <- 0.333333
FLOAT <- 16777216
FLOAT <- 123456
FLOAT <- 1234567
FLOAT <- NULL
FLOAT UNSIGNED <- 0
FLOAT UNSIGNED <- 2.5
FLOAT(7,4) <- 999.9999
FLOAT(7,4) <- -1.00009
FLOAT(7,4) <- 0
DOUBLE <- 0
DOUBLE <- -0.0
DOUBLE <- 1
DOUBLE <- 0.1
DOUBLE <- -1e-300
DOUBLE <- 1.7976931348623157e308
DOUBLE <- 2.2250738585072014e-308
DOUBLE <- 5e-324
DOUBLE <- 0.30000000000000004
DOUBLE <- 123456789012345678
DOUBLE <- 1e15
DOUBLE <- 1e16
DOUBLE <- 1e-5
DOUBLE <- 9007199254740993
DOUBLE <- NULL
DOUBLE(10,3) <- 1234567.891
DOUBLE(10,3) <- -0.001
DOUBLE(10,3) <- 0
REAL <- 3.141592653589793
DECIMAL(1,0) <- 9
DECIMAL(1,0) <- -9
DECIMAL(1,0) <- 0
DECIMAL(1,0) <- 1
DECIMAL(1,0) <- -1
DECIMAL(4,2) <- 99.99
DECIMAL(4,2) <- -99.99
DECIMAL(4,2) <- 0
DECIMAL(4,2) <- 0.01
DECIMAL(4,2) <- -0.01
DECIMAL(5,5) <- 0.99999
DECIMAL(5,5) <- -0.99999
DECIMAL(5,5) <- 0
DECIMAL(5,5) <- 0.00001
DECIMAL(5,5) <- -0.00001
DECIMAL(9,0) <- 999999999
DECIMAL(9,0) <- -999999999
DECIMAL(9,0) <- 0
DECIMAL(9,0) <- 1
DECIMAL(9,0) <- -1
DECIMAL(9,9) <- 0.999999999
DECIMAL(9,9) <- -0.999999999
DECIMAL(9,9) <- 0
DECIMAL(9,9) <- 0.000000001
DECIMAL(9,9) <- -0.000000001
DECIMAL(10,0) <- 9999999999
DECIMAL(10,0) <- -9999999999
DECIMAL(10,0) <- 0
DECIMAL(10,0) <- 1
DECIMAL(10,0) <- -1
DECIMAL(10,2) <- 99999999.99
DECIMAL(10,2) <- -99999999.99
DECIMAL(10,2) <- 0
DECIMAL(10,2) <- 0.01
DECIMAL(10,2) <- -0.01
DECIMAL(14,4) <- 9999999999.9999
DECIMAL(14,4) <- -9999999999.9999
DECIMAL(14,4) <- 0
DECIMAL(14,4) <- 0.0001
DECIMAL(14,4) <- -0.0001
DECIMAL(18,9) <- 999999999.999999999
DECIMAL(18,9) <- -999999999.999999999
DECIMAL(18,9) <- 0
DECIMAL(18,9) <- 0.000000001
DECIMAL(18,9) <- -0.000000001
DECIMAL(19,10) <- 999999999.9999999999
DECIMAL(19,10) <- -999999999.9999999999
DECIMAL(19,10) <- 0
DECIMAL(19,10) <- 0.0000000001
DECIMAL(19,10) <- -0.0000000001
DECIMAL(20,0) <- 99999999999999999999
DECIMAL(20,0) <- -99999999999999999999
DECIMAL(20,0) <- 0
DECIMAL(20,0) <- 1
DECIMAL(20,0) <- -1
DECIMAL(27,18) <- 999999999.999999999999999999
DECIMAL(27,18) <- -999999999.999999999999999999
DECIMAL(27,18) <- 0
DECIMAL(27,18) <- 0.000000000000000001
DECIMAL(27,18) <- -0.000000000000000001
DECIMAL(30,30) <- 0.999999999999999999999999999999
DECIMAL(30,30) <- -0.999999999999999999999999999999
DECIMAL(30,30) <- 0
DECIMAL(30,30) <- 0.000000000000000000000000000001
DECIMAL(30,30) <- -0.000000000000000000000000000001
DECIMAL(36,9) <- 999999999999999999999999999.999999999
DECIMAL(36,9) <- -999999999999999999999999999.999999999
DECIMAL(36,9) <- 0
DECIMAL(36,9) <- 0.000000001
DECIMAL(36,9) <- -0.000000001
DECIMAL(38,0) <- 99999999999999999999999999999999999999
DECIMAL(38,0) <- -99999999999999999999999999999999999999
DECIMAL(38,0) <- 0
DECIMAL(38,0) <- 1
DECIMAL(38,0) <- -1
DECIMAL(38,10) <- 9999999999999999999999999999.9999999999
DECIMAL(38,10) <- -9999999999999999999999999999.9999999999
DECIMAL(38,10) <- 0
DECIMAL(38,10) <- 0.0000000001
DECIMAL(38,10) <- -0.0000000001
DECIMAL(39,1) <- 99999999999999999999999999999999999999.9
DECIMAL(39,1) <- -99999999999999999999999999999999999999.9
DECIMAL(39,1) <- 0
DECIMAL(39,1) <- 0.1
DECIMAL(39,1) <- -0.1
DECIMAL(40,9) <- 9999999999999999999999999999999.999999999
DECIMAL(40,9) <- -9999999999999999999999999999999.999999999
DECIMAL(40,9) <- 0
DECIMAL(40,9) <- 0.000000001
DECIMAL(40,9) <- -0.000000001
DECIMAL(65,0) <- 99999999999999999999999999999999999999999999999999999999999999999
DECIMAL(65,0) <- -99999999999999999999999999999999999999999999999999999999999999999
DECIMAL(65,0) <- 0
DECIMAL(65,0) <- 1
DECIMAL(65,0) <- -1
DECIMAL(65,30) <- 99999999999999999999999999999999999.999999999999999999999999999999
DECIMAL(65,30) <- -99999999999999999999999999999999999.999999999999999999999999999999
DECIMAL(65,30) <- 0
DECIMAL(65,30) <- 0.000000000000000000000000000001
DECIMAL(65,30) <- -0.000000000000000000000000000001
DECIMAL(14,4) <- 1234567890.1234
DECIMAL(14,4) <- -1234567890.1234
DECIMAL(14,4) <- NULL
DECIMAL(14,4) <- -0.0000
DECIMAL(10,2) UNSIGNED <- 0
DECIMAL(10,2) UNSIGNED <- 7.99
DECIMAL(10,2) UNSIGNED <- 99999999.99
DECIMAL(65,30) <- 12345678901234567890123456789012345.123456789012345678901234567891
DECIMAL(65,30) <- 10000000000000000000000000000000000.000000000100000000000000000000
BIT(1) <- b'0'
BIT(1) <- b'1'
BIT(2) <- b'0'
BIT(2) <- b'1'
BIT(2) <- b'11'
BIT(7) <- b'0'
BIT(7) <- b'1'
BIT(7) <- b'1111111'
BIT(8) <- b'0'
BIT(8) <- b'1'
BIT(8) <- b'11111111'
BIT(9) <- b'0'
BIT(9) <- b'1'
BIT(9) <- b'111111111'
BIT(15) <- b'0'
BIT(15) <- b'1'
BIT(15) <- b'111111111111111'
BIT(16) <- b'0'
BIT(16) <- b'1'
BIT(16) <- b'1111111111111111'
BIT(17) <- b'0'
BIT(17) <- b'1'
BIT(17) <- b'11111111111111111'
BIT(31) <- b'0'
BIT(31) <- b'1'
BIT(31) <- b'1111111111111111111111111111111'
BIT(32) <- b'0'
BIT(32) <- b'1'
BIT(32) <- b'11111111111111111111111111111111'
BIT(33) <- b'0'
BIT(33) <- b'1'
BIT(33) <- b'111111111111111111111111111111111'
BIT(63) <- b'0'
BIT(63) <- b'1'
BIT(63) <- b'111111111111111111111111111111111111111111111111111111111111111'
BIT(64) <- b'0'
BIT(64) <- b'1'
BIT(64) <- b'1111111111111111111111111111111111111111111111111111111111111111'
BIT(9) <- b'100000001'
BIT(9) <- NULL
BIT(64) <- b'1000000000000000000000000000000000000000000000000000000000000000'
YEAR <- 0
YEAR <- '0000'
YEAR <- 1901
YEAR <- 2155
YEAR <- 2026
YEAR <- 1970
YEAR <- '69'
YEAR <- '70'
YEAR <- NULL
DATE <- '2026-11-20'
DATE <- '1000-01-01'
DATE <- '9999-12-31'
DATE <- '0000-00-00'
DATE <- '2024-02-29'
DATE <- '2026-00-00'
DATE <- '2026-11-00'
DATE <- '0000-01-01'
DATE <- '1582-10-10'
DATE <- '1969-12-31'
DATE <- '1970-01-01'
DATE <- NULL
DATE <- '0001-01-01'
TIME(0) <- '12:34:56'
TIME(0) <- '-12:34:56'
TIME(0) <- '00:00:00'
TIME(0) <- '-00:00:00'
TIME(0) <- '-00:00:01'
TIME(0) <- '838:59:59'
TIME(0) <- '-838:59:59'
TIME(0) <- '-100:00:00'
TIME(0) <- '837:59:59'
TIME(0) <- '-00:01:00'
TIME(0) <- NULL
DATETIME(0) <- '2026-11-20 10:00:00'
DATETIME(0) <- '9999-12-31 23:59:59'
DATETIME(0) <- '1000-01-01 00:00:00'
DATETIME(0) <- '0000-00-00 00:00:00'
DATETIME(0) <- '2026-00-00 01:02:03'
DATETIME(0) <- '1969-12-31 23:59:59'
DATETIME(0) <- NULL
TIMESTAMP(0) NULL <- '2026-11-20 10:00:00'
TIMESTAMP(0) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(0) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(0) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(0) NULL <- '2001-09-09 01:46:39'
TIMESTAMP(0) NULL <- NULL
TIME(1) <- '12:34:56.1'
TIME(1) <- '-12:34:56.1'
TIME(1) <- '00:00:00'
TIME(1) <- '-00:00:00.1'
TIME(1) <- '-00:00:01.9'
TIME(1) <- '838:59:59'
TIME(1) <- '-838:59:59'
TIME(1) <- '-100:00:00.1'
TIME(1) <- '837:59:59.9'
TIME(1) <- '-00:01:00.1'
TIME(1) <- NULL
DATETIME(1) <- '2026-11-20 10:00:00.1'
DATETIME(1) <- '9999-12-31 23:59:59'
DATETIME(1) <- '1000-01-01 00:00:00.1'
DATETIME(1) <- '0000-00-00 00:00:00'
DATETIME(1) <- '2026-00-00 01:02:03'
DATETIME(1) <- '1969-12-31 23:59:59.9'
DATETIME(1) <- NULL
TIMESTAMP(1) NULL <- '2026-11-20 10:00:00.1'
TIMESTAMP(1) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(1) NULL <- '1970-01-01 00:00:00.9'
TIMESTAMP(1) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(1) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(1) NULL <- '2001-09-09 01:46:39.9'
TIMESTAMP(1) NULL <- NULL
TIME(2) <- '12:34:56.12'
TIME(2) <- '-12:34:56.12'
TIME(2) <- '00:00:00'
TIME(2) <- '-00:00:00.01'
TIME(2) <- '-00:00:01.99'
TIME(2) <- '838:59:59'
TIME(2) <- '-838:59:59'
TIME(2) <- '-100:00:00.01'
TIME(2) <- '837:59:59.99'
TIME(2) <- '-00:01:00.12'
TIME(2) <- NULL
DATETIME(2) <- '2026-11-20 10:00:00.12'
DATETIME(2) <- '9999-12-31 23:59:59'
DATETIME(2) <- '1000-01-01 00:00:00.01'
DATETIME(2) <- '0000-00-00 00:00:00'
DATETIME(2) <- '2026-00-00 01:02:03'
DATETIME(2) <- '1969-12-31 23:59:59.99'
DATETIME(2) <- NULL
TIMESTAMP(2) NULL <- '2026-11-20 10:00:00.12'
TIMESTAMP(2) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(2) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(2) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(2) NULL <- '2001-09-09 01:46:39.99'
TIMESTAMP(2) NULL <- NULL
TIME(3) <- '12:34:56.123'
TIME(3) <- '-12:34:56.123'
TIME(3) <- '00:00:00'
TIME(3) <- '-00:00:00.001'
TIME(3) <- '-00:00:01.999'
TIME(3) <- '838:59:59'
TIME(3) <- '-838:59:59'
TIME(3) <- '-100:00:00.001'
TIME(3) <- '837:59:59.999'
TIME(3) <- '-00:01:00.123'
TIME(3) <- NULL
DATETIME(3) <- '2026-11-20 10:00:00.123'
DATETIME(3) <- '9999-12-31 23:59:59'
DATETIME(3) <- '1000-01-01 00:00:00.001'
DATETIME(3) <- '0000-00-00 00:00:00'
DATETIME(3) <- '2026-00-00 01:02:03'
DATETIME(3) <- '1969-12-31 23:59:59.999'
DATETIME(3) <- NULL
TIMESTAMP(3) NULL <- '2026-11-20 10:00:00.123'
TIMESTAMP(3) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(3) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(3) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(3) NULL <- '2001-09-09 01:46:39.999'
TIMESTAMP(3) NULL <- NULL
TIME(4) <- '12:34:56.1234'
TIME(4) <- '-12:34:56.1234'
TIME(4) <- '00:00:00'
TIME(4) <- '-00:00:00.0001'
TIME(4) <- '-00:00:01.9999'
TIME(4) <- '838:59:59'
TIME(4) <- '-838:59:59'
TIME(4) <- '-100:00:00.0001'
TIME(4) <- '837:59:59.9999'
TIME(4) <- '-00:01:00.1234'
TIME(4) <- NULL
DATETIME(4) <- '2026-11-20 10:00:00.1234'
DATETIME(4) <- '9999-12-31 23:59:59'
DATETIME(4) <- '1000-01-01 00:00:00.0001'
DATETIME(4) <- '0000-00-00 00:00:00'
DATETIME(4) <- '2026-00-00 01:02:03'
DATETIME(4) <- '1969-12-31 23:59:59.9999'
DATETIME(4) <- NULL
TIMESTAMP(4) NULL <- '2026-11-20 10:00:00.1234'
TIMESTAMP(4) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(4) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(4) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(4) NULL <- '2001-09-09 01:46:39.9999'
TIMESTAMP(4) NULL <- NULL
TIME(5) <- '12:34:56.12345'
TIME(5) <- '-12:34:56.12345'
TIME(5) <- '00:00:00'
TIME(5) <- '-00:00:00.00001'
TIME(5) <- '-00:00:01.99999'
TIME(5) <- '838:59:59'
TIME(5) <- '-838:59:59'
TIME(5) <- '-100:00:00.00001'
TIME(5) <- '837:59:59.99999'
TIME(5) <- '-00:01:00.12345'
TIME(5) <- NULL
DATETIME(5) <- '2026-11-20 10:00:00.12345'
DATETIME(5) <- '9999-12-31 23:59:59'
DATETIME(5) <- '1000-01-01 00:00:00.00001'
DATETIME(5) <- '0000-00-00 00:00:00'
DATETIME(5) <- '2026-00-00 01:02:03'
DATETIME(5) <- '1969-12-31 23:59:59.99999'
DATETIME(5) <- NULL
TIMESTAMP(5) NULL <- '2026-11-20 10:00:00.12345'
TIMESTAMP(5) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(5) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(5) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(5) NULL <- '2001-09-09 01:46:39.99999'
TIMESTAMP(5) NULL <- NULL
TIME(6) <- '12:34:56.123456'
TIME(6) <- '-12:34:56.123456'
TIME(6) <- '00:00:00'
TIME(6) <- '-00:00:00.000001'
TIME(6) <- '-00:00:01.999999'
TIME(6) <- '838:59:59'
TIME(6) <- '-838:59:59'
TIME(6) <- '-100:00:00.000001'
TIME(6) <- '837:59:59.999999'
TIME(6) <- '-00:01:00.123456'
TIME(6) <- NULL
DATETIME(6) <- '2026-11-20 10:00:00.123456'
DATETIME(6) <- '9999-12-31 23:59:59'
DATETIME(6) <- '1000-01-01 00:00:00.000001'
DATETIME(6) <- '0000-00-00 00:00:00'
DATETIME(6) <- '2026-00-00 01:02:03'
DATETIME(6) <- '1969-12-31 23:59:59.999999'
DATETIME(6) <- NULL
TIMESTAMP(6) NULL <- '2026-11-20 10:00:00.123456'
TIMESTAMP(6) NULL <- '1970-01-01 00:00:01'
TIMESTAMP(6) NULL <- '1970-01-01 00:00:00.000001'
TIMESTAMP(6) NULL <- '2038-01-19 03:14:07'
TIMESTAMP(6) NULL <- '0000-00-00 00:00:00'
TIMESTAMP(6) NULL <- '2001-09-09 01:46:39.999999'
TIMESTAMP(6) NULL <- NULL
CHAR(40) <- ''
CHAR(40) <- 'a'
CHAR(40) <- 'é漢😀'
CHAR(40) <- 'quote \' " back \\ slash'
CHAR(40) <- 'tab\tnl\ncr\r nul\0 end'
CHAR(40) <- '  lead and trail  '
CHAR(40) <- NULL
VARCHAR(63) <- ''
VARCHAR(63) <- 'a'
VARCHAR(63) <- 'é漢😀'
VARCHAR(63) <- 'quote \' " back \\ slash'
VARCHAR(63) <- 'tab\tnl\ncr\r nul\0 end'
VARCHAR(63) <- '  lead and trail  '
VARCHAR(63) <- NULL
VARCHAR(64) <- ''
VARCHAR(64) <- 'a'
VARCHAR(64) <- 'é漢😀'
VARCHAR(64) <- 'quote \' " back \\ slash'
VARCHAR(64) <- 'tab\tnl\ncr\r nul\0 end'
VARCHAR(64) <- '  lead and trail  '
VARCHAR(64) <- NULL
VARCHAR(255) <- ''
VARCHAR(255) <- 'a'
VARCHAR(255) <- 'é漢😀'
VARCHAR(255) <- 'quote \' " back \\ slash'
VARCHAR(255) <- 'tab\tnl\ncr\r nul\0 end'
VARCHAR(255) <- '  lead and trail  '
VARCHAR(255) <- NULL
VARCHAR(256) <- ''
VARCHAR(256) <- 'a'
VARCHAR(256) <- 'é漢😀'
VARCHAR(256) <- 'quote \' " back \\ slash'
VARCHAR(256) <- 'tab\tnl\ncr\r nul\0 end'
VARCHAR(256) <- '  lead and trail  '
VARCHAR(256) <- NULL
VARCHAR(16000) <- ''
VARCHAR(16000) <- 'a'
VARCHAR(16000) <- 'é漢😀'
VARCHAR(16000) <- 'quote \' " back \\ slash'
VARCHAR(16000) <- 'tab\tnl\ncr\r nul\0 end'
VARCHAR(16000) <- '  lead and trail  '
VARCHAR(16000) <- NULL
TINYTEXT <- ''
TINYTEXT <- 'a'
TINYTEXT <- 'é漢😀'
TINYTEXT <- 'quote \' " back \\ slash'
TINYTEXT <- 'tab\tnl\ncr\r nul\0 end'
TINYTEXT <- '  lead and trail  '
TINYTEXT <- NULL
TEXT <- ''
TEXT <- 'a'
TEXT <- 'é漢😀'
TEXT <- 'quote \' " back \\ slash'
TEXT <- 'tab\tnl\ncr\r nul\0 end'
TEXT <- '  lead and trail  '
TEXT <- NULL
MEDIUMTEXT <- ''
MEDIUMTEXT <- 'a'
MEDIUMTEXT <- 'é漢😀'
MEDIUMTEXT <- 'quote \' " back \\ slash'
MEDIUMTEXT <- 'tab\tnl\ncr\r nul\0 end'
MEDIUMTEXT <- '  lead and trail  '
MEDIUMTEXT <- NULL
LONGTEXT <- ''
LONGTEXT <- 'a'
LONGTEXT <- 'é漢😀'
LONGTEXT <- 'quote \' " back \\ slash'
LONGTEXT <- 'tab\tnl\ncr\r nul\0 end'
LONGTEXT <- '  lead and trail  '
LONGTEXT <- NULL
CHAR(0) <- ''
CHAR(0) <- NULL
CHAR(255) <- REPEAT('漢',255)
CHAR(64) <- REPEAT('😀',64)
VARCHAR(16000) <- REPEAT('x',16000)
VARCHAR(16000) <- REPEAT('é',255)
VARCHAR(16000) <- REPEAT('e',256)
TINYTEXT <- REPEAT('x',255)
TEXT <- REPEAT('é',30000)
MEDIUMTEXT <- REPEAT('漢',30000)
LONGTEXT <- REPEAT('ab',100000)
BINARY(8) <- ''
BINARY(8) <- X'00'
BINARY(8) <- X'0000'
BINARY(8) <- X'FF00FF'
BINARY(8) <- X'4100'
BINARY(8) <- 'a '
BINARY(8) <- NULL
VARBINARY(100) <- ''
VARBINARY(100) <- X'00'
VARBINARY(100) <- X'0000'
VARBINARY(100) <- X'FF00FF'
VARBINARY(100) <- X'4100'
VARBINARY(100) <- 'a '
VARBINARY(100) <- NULL
TINYBLOB <- ''
TINYBLOB <- X'00'
TINYBLOB <- X'0000'
TINYBLOB <- X'FF00FF'
TINYBLOB <- X'4100'
TINYBLOB <- 'a '
TINYBLOB <- NULL
BLOB <- ''
BLOB <- X'00'
BLOB <- X'0000'
BLOB <- X'FF00FF'
BLOB <- X'4100'
BLOB <- 'a '
BLOB <- NULL
MEDIUMBLOB <- ''
MEDIUMBLOB <- X'00'
MEDIUMBLOB <- X'0000'
MEDIUMBLOB <- X'FF00FF'
MEDIUMBLOB <- X'4100'
MEDIUMBLOB <- 'a '
MEDIUMBLOB <- NULL
LONGBLOB <- ''
LONGBLOB <- X'00'
LONGBLOB <- X'0000'
LONGBLOB <- X'FF00FF'
LONGBLOB <- X'4100'
LONGBLOB <- 'a '
LONGBLOB <- NULL
BINARY(255) <- X'00FF'
BINARY(255) <- REPEAT(X'01',255)
VARBINARY(300) <- REPEAT(X'FF',300)
BLOB <- REPEAT(X'00',65535)
BINARY(0) <- ''
BINARY(0) <- NULL
ENUM('a','b,c','é','漢','it''s','') <- 'a'
ENUM('a','b,c','é','漢','it''s','') <- 'b,c'
ENUM('a','b,c','é','漢','it''s','') <- 'é'
ENUM('a','b,c','é','漢','it''s','') <- '漢'
ENUM('a','b,c','é','漢','it''s','') <- 'it''s'
ENUM('a','b,c','é','漢','it''s','') <- ''
ENUM('a','b,c','é','漢','it''s','') <- 0
ENUM('a','b,c','é','漢','it''s','') <- 'no such label'
ENUM('a','b,c','é','漢','it''s','') <- NULL
ENUM('l0','l1','l2','l3','l4','l5','l6','l7','l8','l9','l10','l11','l12','l13','l14','l15','l16','l17','l18','l19','l20','l21','l22','l23','l24','l25','l26','l27','l28','l29','l30','l31','l32','l33','l34','l35','l36','l37','l38','l39','l40','l41','l42','l43','l44','l45','l46','l47','l48','l49','l50','l51','l52','l53','l54','l55','l56','l57','l58','l59','l60','l61','l62','l63','l64','l65','l66','l67','l68','l69','l70','l71','l72','l73','l74','l75','l76','l77','l78','l79','l80','l81','l82','l83','l84','l85','l86','l87','l88','l89','l90','l91','l92','l93','l94','l95','l96','l97','l98','l99','l100','l101','l102','l103','l104','l105','l106','l107','l108','l109','l110','l111','l112','l113','l114','l115','l116','l117','l118','l119','l120','l121','l122','l123','l124','l125','l126','l127','l128','l129','l130','l131','l132','l133','l134','l135','l136','l137','l138','l139','l140','l141','l142','l143','l144','l145','l146','l147','l148','l149','l150','l151','l152','l153','l154','l155','l156','l157','l158','l159','l160','l161','l162','l163','l164','l165','l166','l167','l168','l169','l170','l171','l172','l173','l174','l175','l176','l177','l178','l179','l180','l181','l182','l183','l184','l185','l186','l187','l188','l189','l190','l191','l192','l193','l194','l195','l196','l197','l198','l199','l200','l201','l202','l203','l204','l205','l206','l207','l208','l209','l210','l211','l212','l213','l214','l215','l216','l217','l218','l219','l220','l221','l222','l223','l224','l225','l226','l227','l228','l229','l230','l231','l232','l233','l234','l235','l236','l237','l238','l239','l240','l241','l242','l243','l244','l245','l246','l247','l248','l249','l250','l251','l252','l253','l254','l255','l256','l257','l258','l259','l260','l261','l262','l263','l264','l265','l266','l267','l268','l269','l270','l271','l272','l273','l274','l275','l276','l277','l278','l279','l280','l281','l282','l283','l284','l285','l286','l287','l288','l289','l290','l291','l292','l293','l294','l295','l296','l297','l298','l299') <- 'l0'
ENUM('l0','l1','l2','l3','l4','l5','l6','l7','l8','l9','l10','l11','l12','l13','l14','l15','l16','l17','l18','l19','l20','l21','l22','l23','l24','l25','l26','l27','l28','l29','l30','l31','l32','l33','l34','l35','l36','l37','l38','l39','l40','l41','l42','l43','l44','l45','l46','l47','l48','l49','l50','l51','l52','l53','l54','l55','l56','l57','l58','l59','l60','l61','l62','l63','l64','l65','l66','l67','l68','l69','l70','l71','l72','l73','l74','l75','l76','l77','l78','l79','l80','l81','l82','l83','l84','l85','l86','l87','l88','l89','l90','l91','l92','l93','l94','l95','l96','l97','l98','l99','l100','l101','l102','l103','l104','l105','l106','l107','l108','l109','l110','l111','l112','l113','l114','l115','l116','l117','l118','l119','l120','l121','l122','l123','l124','l125','l126','l127','l128','l129','l130','l131','l132','l133','l134','l135','l136','l137','l138','l139','l140','l141','l142','l143','l144','l145','l146','l147','l148','l149','l150','l151','l152','l153','l154','l155','l156','l157','l158','l159','l160','l161','l162','l163','l164','l165','l166','l167','l168','l169','l170','l171','l172','l173','l174','l175','l176','l177','l178','l179','l180','l181','l182','l183','l184','l185','l186','l187','l188','l189','l190','l191','l192','l193','l194','l195','l196','l197','l198','l199','l200','l201','l202','l203','l204','l205','l206','l207','l208','l209','l210','l211','l212','l213','l214','l215','l216','l217','l218','l219','l220','l221','l222','l223','l224','l225','l226','l227','l228','l229','l230','l231','l232','l233','l234','l235','l236','l237','l238','l239','l240','l241','l242','l243','l244','l245','l246','l247','l248','l249','l250','l251','l252','l253','l254','l255','l256','l257','l258','l259','l260','l261','l262','l263','l264','l265','l266','l267','l268','l269','l270','l271','l272','l273','l274','l275','l276','l277','l278','l279','l280','l281','l282','l283','l284','l285','l286','l287','l288','l289','l290','l291','l292','l293','l294','l295','l296','l297','l298','l299') <- 'l255'
ENUM('l0','l1','l2','l3','l4','l5','l6','l7','l8','l9','l10','l11','l12','l13','l14','l15','l16','l17','l18','l19','l20','l21','l22','l23','l24','l25','l26','l27','l28','l29','l30','l31','l32','l33','l34','l35','l36','l37','l38','l39','l40','l41','l42','l43','l44','l45','l46','l47','l48','l49','l50','l51','l52','l53','l54','l55','l56','l57','l58','l59','l60','l61','l62','l63','l64','l65','l66','l67','l68','l69','l70','l71','l72','l73','l74','l75','l76','l77','l78','l79','l80','l81','l82','l83','l84','l85','l86','l87','l88','l89','l90','l91','l92','l93','l94','l95','l96','l97','l98','l99','l100','l101','l102','l103','l104','l105','l106','l107','l108','l109','l110','l111','l112','l113','l114','l115','l116','l117','l118','l119','l120','l121','l122','l123','l124','l125','l126','l127','l128','l129','l130','l131','l132','l133','l134','l135','l136','l137','l138','l139','l140','l141','l142','l143','l144','l145','l146','l147','l148','l149','l150','l151','l152','l153','l154','l155','l156','l157','l158','l159','l160','l161','l162','l163','l164','l165','l166','l167','l168','l169','l170','l171','l172','l173','l174','l175','l176','l177','l178','l179','l180','l181','l182','l183','l184','l185','l186','l187','l188','l189','l190','l191','l192','l193','l194','l195','l196','l197','l198','l199','l200','l201','l202','l203','l204','l205','l206','l207','l208','l209','l210','l211','l212','l213','l214','l215','l216','l217','l218','l219','l220','l221','l222','l223','l224','l225','l226','l227','l228','l229','l230','l231','l232','l233','l234','l235','l236','l237','l238','l239','l240','l241','l242','l243','l244','l245','l246','l247','l248','l249','l250','l251','l252','l253','l254','l255','l256','l257','l258','l259','l260','l261','l262','l263','l264','l265','l266','l267','l268','l269','l270','l271','l272','l273','l274','l275','l276','l277','l278','l279','l280','l281','l282','l283','l284','l285','l286','l287','l288','l289','l290','l291','l292','l293','l294','l295','l296','l297','l298','l299') <- 'l299'
ENUM('l0','l1','l2','l3','l4','l5','l6','l7','l8','l9','l10','l11','l12','l13','l14','l15','l16','l17','l18','l19','l20','l21','l22','l23','l24','l25','l26','l27','l28','l29','l30','l31','l32','l33','l34','l35','l36','l37','l38','l39','l40','l41','l42','l43','l44','l45','l46','l47','l48','l49','l50','l51','l52','l53','l54','l55','l56','l57','l58','l59','l60','l61','l62','l63','l64','l65','l66','l67','l68','l69','l70','l71','l72','l73','l74','l75','l76','l77','l78','l79','l80','l81','l82','l83','l84','l85','l86','l87','l88','l89','l90','l91','l92','l93','l94','l95','l96','l97','l98','l99','l100','l101','l102','l103','l104','l105','l106','l107','l108','l109','l110','l111','l112','l113','l114','l115','l116','l117','l118','l119','l120','l121','l122','l123','l124','l125','l126','l127','l128','l129','l130','l131','l132','l133','l134','l135','l136','l137','l138','l139','l140','l141','l142','l143','l144','l145','l146','l147','l148','l149','l150','l151','l152','l153','l154','l155','l156','l157','l158','l159','l160','l161','l162','l163','l164','l165','l166','l167','l168','l169','l170','l171','l172','l173','l174','l175','l176','l177','l178','l179','l180','l181','l182','l183','l184','l185','l186','l187','l188','l189','l190','l191','l192','l193','l194','l195','l196','l197','l198','l199','l200','l201','l202','l203','l204','l205','l206','l207','l208','l209','l210','l211','l212','l213','l214','l215','l216','l217','l218','l219','l220','l221','l222','l223','l224','l225','l226','l227','l228','l229','l230','l231','l232','l233','l234','l235','l236','l237','l238','l239','l240','l241','l242','l243','l244','l245','l246','l247','l248','l249','l250','l251','l252','l253','l254','l255','l256','l257','l258','l259','l260','l261','l262','l263','l264','l265','l266','l267','l268','l269','l270','l271','l272','l273','l274','l275','l276','l277','l278','l279','l280','l281','l282','l283','l284','l285','l286','l287','l288','l289','l290','l291','l292','l293','l294','l295','l296','l297','l298','l299') <- 256
SET('x','y','é') <- ''
SET('x','y','é') <- 'x'
SET('x','y','é') <- 'x,y'
SET('x','y','é') <- 'é,x'
SET('x','y','é') <- 7
SET('x','y','é') <- NULL
SET('','a','b') <- 0
SET('','a','b') <- 1
SET('','a','b') <- 2
SET('','a','b') <- 3
SET('','a','b') <- 4
SET('','a','b') <- 5
SET('','a','b') <- 6
SET('','a','b') <- 7
SET('a','','b') <- 2
SET('a','','b') <- 3
SET('a','','b') <- 6
SET('a','','b') <- 7
SET('','','s2','s3','s4','s5','s6','s7','s8') <- 3
SET('','','s2','s3','s4','s5','s6','s7','s8') <- 5
SET('','','s2','s3','s4','s5','s6','s7','s8') <- 257
SET('','','s2','s3','s4','s5','s6','s7','s8') <- 511
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8') <- 's8'
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8') <- 511
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32') <- 's32'
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32') <- 's0,s31,s32'
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32','s33','s34','s35','s36','s37','s38','s39','s40','s41','s42','s43','s44','s45','s46','s47','s48','s49','s50','s51','s52','s53','s54','s55','s56','s57','s58','s59','s60','s61','s62','s63') <- 's63'
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32','s33','s34','s35','s36','s37','s38','s39','s40','s41','s42','s43','s44','s45','s46','s47','s48','s49','s50','s51','s52','s53','s54','s55','s56','s57','s58','s59','s60','s61','s62','s63') <- 's0,s63'
SET('s0','s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32','s33','s34','s35','s36','s37','s38','s39','s40','s41','s42','s43','s44','s45','s46','s47','s48','s49','s50','s51','s52','s53','s54','s55','s56','s57','s58','s59','s60','s61','s62','s63') <- 18446744073709551615
VARCHAR(60) CHARACTER SET latin1 <- 'naïve café €'
VARCHAR(60) CHARACTER SET latin1 <- 'Ÿ‰'
CHAR(20) CHARACTER SET latin1 <- 'naïve café €'
CHAR(20) CHARACTER SET latin1 <- '  a b  '
CHAR(20) CHARACTER SET latin1 <- ''
TEXT CHARACTER SET latin1 <- REPEAT('naïve café €',200)
ENUM('naïve café €','b') CHARACTER SET latin1 <- 'naïve café €'
ENUM('naïve café €','b') CHARACTER SET latin1 <- 2
SET('naïve café €','b') CHARACTER SET latin1 <- 3
VARCHAR(60) CHARACTER SET latin2 <- 'zażółć gęślą'
CHAR(20) CHARACTER SET latin2 <- 'zażółć gęślą'
CHAR(20) CHARACTER SET latin2 <- '  a b  '
CHAR(20) CHARACTER SET latin2 <- ''
TEXT CHARACTER SET latin2 <- REPEAT('zażółć gęślą',200)
ENUM('zażółć gęślą','b') CHARACTER SET latin2 <- 'zażółć gęślą'
ENUM('zażółć gęślą','b') CHARACTER SET latin2 <- 2
SET('zażółć gęślą','b') CHARACTER SET latin2 <- 3
VARCHAR(60) CHARACTER SET latin5 <- 'İstanbul ğış'
CHAR(20) CHARACTER SET latin5 <- 'İstanbul ğış'
CHAR(20) CHARACTER SET latin5 <- '  a b  '
CHAR(20) CHARACTER SET latin5 <- ''
TEXT CHARACTER SET latin5 <- REPEAT('İstanbul ğış',200)
ENUM('İstanbul ğış','b') CHARACTER SET latin5 <- 'İstanbul ğış'
ENUM('İstanbul ğış','b') CHARACTER SET latin5 <- 2
SET('İstanbul ğış','b') CHARACTER SET latin5 <- 3
VARCHAR(60) CHARACTER SET latin7 <- 'ąčęė'
CHAR(20) CHARACTER SET latin7 <- 'ąčęė'
CHAR(20) CHARACTER SET latin7 <- '  a b  '
CHAR(20) CHARACTER SET latin7 <- ''
TEXT CHARACTER SET latin7 <- REPEAT('ąčęė',200)
ENUM('ąčęė','b') CHARACTER SET latin7 <- 'ąčęė'
ENUM('ąčęė','b') CHARACTER SET latin7 <- 2
SET('ąčęė','b') CHARACTER SET latin7 <- 3
VARCHAR(60) CHARACTER SET ascii <- 'plain'
CHAR(20) CHARACTER SET ascii <- 'plain'
CHAR(20) CHARACTER SET ascii <- '  a b  '
CHAR(20) CHARACTER SET ascii <- ''
TEXT CHARACTER SET ascii <- REPEAT('plain',200)
ENUM('plain','b') CHARACTER SET ascii <- 'plain'
ENUM('plain','b') CHARACTER SET ascii <- 2
SET('plain','b') CHARACTER SET ascii <- 3
VARCHAR(60) CHARACTER SET cp1250 <- 'Příliš žluťoučký'
CHAR(20) CHARACTER SET cp1250 <- 'Příliš žluťoučký'
CHAR(20) CHARACTER SET cp1250 <- '  a b  '
CHAR(20) CHARACTER SET cp1250 <- ''
TEXT CHARACTER SET cp1250 <- REPEAT('Příliš žluťoučký',200)
ENUM('Příliš žluťoučký','b') CHARACTER SET cp1250 <- 'Příliš žluťoučký'
ENUM('Příliš žluťoučký','b') CHARACTER SET cp1250 <- 2
SET('Příliš žluťoučký','b') CHARACTER SET cp1250 <- 3
VARCHAR(60) CHARACTER SET cp1251 <- 'Привет, мир'
CHAR(20) CHARACTER SET cp1251 <- 'Привет, мир'
CHAR(20) CHARACTER SET cp1251 <- '  a b  '
CHAR(20) CHARACTER SET cp1251 <- ''
TEXT CHARACTER SET cp1251 <- REPEAT('Привет, мир',200)
ENUM('Привет, мир','b') CHARACTER SET cp1251 <- 'Привет, мир'
ENUM('Привет, мир','b') CHARACTER SET cp1251 <- 2
SET('Привет  мир','b') CHARACTER SET cp1251 <- 3
VARCHAR(60) CHARACTER SET cp1256 <- 'مرحبا'
CHAR(20) CHARACTER SET cp1256 <- 'مرحبا'
CHAR(20) CHARACTER SET cp1256 <- '  a b  '
CHAR(20) CHARACTER SET cp1256 <- ''
TEXT CHARACTER SET cp1256 <- REPEAT('مرحبا',200)
ENUM('مرحبا','b') CHARACTER SET cp1256 <- 'مرحبا'
ENUM('مرحبا','b') CHARACTER SET cp1256 <- 2
SET('مرحبا','b') CHARACTER SET cp1256 <- 3
VARCHAR(60) CHARACTER SET cp1257 <- 'Šiauliai'
CHAR(20) CHARACTER SET cp1257 <- 'Šiauliai'
CHAR(20) CHARACTER SET cp1257 <- '  a b  '
CHAR(20) CHARACTER SET cp1257 <- ''
TEXT CHARACTER SET cp1257 <- REPEAT('Šiauliai',200)
ENUM('Šiauliai','b') CHARACTER SET cp1257 <- 'Šiauliai'
ENUM('Šiauliai','b') CHARACTER SET cp1257 <- 2
SET('Šiauliai','b') CHARACTER SET cp1257 <- 3
VARCHAR(60) CHARACTER SET cp850 <- 'çà░'
CHAR(20) CHARACTER SET cp850 <- 'çà░'
CHAR(20) CHARACTER SET cp850 <- '  a b  '
CHAR(20) CHARACTER SET cp850 <- ''
TEXT CHARACTER SET cp850 <- REPEAT('çà░',200)
ENUM('çà░','b') CHARACTER SET cp850 <- 'çà░'
ENUM('çà░','b') CHARACTER SET cp850 <- 2
SET('çà░','b') CHARACTER SET cp850 <- 3
VARCHAR(60) CHARACTER SET cp852 <- 'Łódź'
CHAR(20) CHARACTER SET cp852 <- 'Łódź'
CHAR(20) CHARACTER SET cp852 <- '  a b  '
CHAR(20) CHARACTER SET cp852 <- ''
TEXT CHARACTER SET cp852 <- REPEAT('Łódź',200)
ENUM('Łódź','b') CHARACTER SET cp852 <- 'Łódź'
ENUM('Łódź','b') CHARACTER SET cp852 <- 2
SET('Łódź','b') CHARACTER SET cp852 <- 3
VARCHAR(60) CHARACTER SET cp866 <- 'Привет №'
CHAR(20) CHARACTER SET cp866 <- 'Привет №'
CHAR(20) CHARACTER SET cp866 <- '  a b  '
CHAR(20) CHARACTER SET cp866 <- ''
TEXT CHARACTER SET cp866 <- REPEAT('Привет №',200)
ENUM('Привет №','b') CHARACTER SET cp866 <- 'Привет №'
ENUM('Привет №','b') CHARACTER SET cp866 <- 2
SET('Привет №','b') CHARACTER SET cp866 <- 3
VARCHAR(60) CHARACTER SET dec8 <- 'Œuvre'
CHAR(20) CHARACTER SET dec8 <- 'Œuvre'
CHAR(20) CHARACTER SET dec8 <- '  a b  '
CHAR(20) CHARACTER SET dec8 <- ''
TEXT CHARACTER SET dec8 <- REPEAT('Œuvre',200)
ENUM('Œuvre','b') CHARACTER SET dec8 <- 'Œuvre'
ENUM('Œuvre','b') CHARACTER SET dec8 <- 2
SET('Œuvre','b') CHARACTER SET dec8 <- 3
VARCHAR(60) CHARACTER SET greek <- 'Ελλάδα'
CHAR(20) CHARACTER SET greek <- 'Ελλάδα'
CHAR(20) CHARACTER SET greek <- '  a b  '
CHAR(20) CHARACTER SET greek <- ''
TEXT CHARACTER SET greek <- REPEAT('Ελλάδα',200)
ENUM('Ελλάδα','b') CHARACTER SET greek <- 'Ελλάδα'
ENUM('Ελλάδα','b') CHARACTER SET greek <- 2
SET('Ελλάδα','b') CHARACTER SET greek <- 3
VARCHAR(60) CHARACTER SET hebrew <- 'שלום'
CHAR(20) CHARACTER SET hebrew <- 'שלום'
CHAR(20) CHARACTER SET hebrew <- '  a b  '
CHAR(20) CHARACTER SET hebrew <- ''
TEXT CHARACTER SET hebrew <- REPEAT('שלום',200)
ENUM('שלום','b') CHARACTER SET hebrew <- 'שלום'
ENUM('שלום','b') CHARACTER SET hebrew <- 2
SET('שלום','b') CHARACTER SET hebrew <- 3
VARCHAR(60) CHARACTER SET hp8 <- 'Ÿ£'
CHAR(20) CHARACTER SET hp8 <- 'Ÿ£'
CHAR(20) CHARACTER SET hp8 <- '  a b  '
CHAR(20) CHARACTER SET hp8 <- ''
TEXT CHARACTER SET hp8 <- REPEAT('Ÿ£',200)
ENUM('Ÿ£','b') CHARACTER SET hp8 <- 'Ÿ£'
ENUM('Ÿ£','b') CHARACTER SET hp8 <- 2
SET('Ÿ£','b') CHARACTER SET hp8 <- 3
VARCHAR(60) CHARACTER SET keybcs2 <- 'Čeština'
CHAR(20) CHARACTER SET keybcs2 <- 'Čeština'
CHAR(20) CHARACTER SET keybcs2 <- '  a b  '
CHAR(20) CHARACTER SET keybcs2 <- ''
TEXT CHARACTER SET keybcs2 <- REPEAT('Čeština',200)
ENUM('Čeština','b') CHARACTER SET keybcs2 <- 'Čeština'
ENUM('Čeština','b') CHARACTER SET keybcs2 <- 2
SET('Čeština','b') CHARACTER SET keybcs2 <- 3
VARCHAR(60) CHARACTER SET koi8r <- 'Привет'
CHAR(20) CHARACTER SET koi8r <- 'Привет'
CHAR(20) CHARACTER SET koi8r <- '  a b  '
CHAR(20) CHARACTER SET koi8r <- ''
TEXT CHARACTER SET koi8r <- REPEAT('Привет',200)
ENUM('Привет','b') CHARACTER SET koi8r <- 'Привет'
ENUM('Привет','b') CHARACTER SET koi8r <- 2
SET('Привет','b') CHARACTER SET koi8r <- 3
VARCHAR(60) CHARACTER SET koi8u <- 'Їжак ґ'
CHAR(20) CHARACTER SET koi8u <- 'Їжак ґ'
CHAR(20) CHARACTER SET koi8u <- '  a b  '
CHAR(20) CHARACTER SET koi8u <- ''
TEXT CHARACTER SET koi8u <- REPEAT('Їжак ґ',200)
ENUM('Їжак ґ','b') CHARACTER SET koi8u <- 'Їжак ґ'
ENUM('Їжак ґ','b') CHARACTER SET koi8u <- 2
SET('Їжак ґ','b') CHARACTER SET koi8u <- 3
VARCHAR(60) CHARACTER SET macce <- 'Ľščťž'
CHAR(20) CHARACTER SET macce <- 'Ľščťž'
CHAR(20) CHARACTER SET macce <- '  a b  '
CHAR(20) CHARACTER SET macce <- ''
TEXT CHARACTER SET macce <- REPEAT('Ľščťž',200)
ENUM('Ľščťž','b') CHARACTER SET macce <- 'Ľščťž'
ENUM('Ľščťž','b') CHARACTER SET macce <- 2
SET('Ľščťž','b') CHARACTER SET macce <- 3
VARCHAR(60) CHARACTER SET macroman <- 'Ωé€'
CHAR(20) CHARACTER SET macroman <- 'Ωé€'
CHAR(20) CHARACTER SET macroman <- '  a b  '
CHAR(20) CHARACTER SET macroman <- ''
TEXT CHARACTER SET macroman <- REPEAT('Ωé€',200)
ENUM('Ωé€','b') CHARACTER SET macroman <- 'Ωé€'
ENUM('Ωé€','b') CHARACTER SET macroman <- 2
SET('Ωé€','b') CHARACTER SET macroman <- 3
VARCHAR(60) CHARACTER SET swe7 <- 'ÅÄÖ'
CHAR(20) CHARACTER SET swe7 <- 'ÅÄÖ'
CHAR(20) CHARACTER SET swe7 <- '  a b  '
CHAR(20) CHARACTER SET swe7 <- ''
TEXT CHARACTER SET swe7 <- REPEAT('ÅÄÖ',200)
ENUM('ÅÄÖ','b') CHARACTER SET swe7 <- 'ÅÄÖ'
ENUM('ÅÄÖ','b') CHARACTER SET swe7 <- 2
SET('ÅÄÖ','b') CHARACTER SET swe7 <- 3
VARCHAR(60) CHARACTER SET tis620 <- 'สวัสดี'
CHAR(20) CHARACTER SET tis620 <- 'สวัสดี'
CHAR(20) CHARACTER SET tis620 <- '  a b  '
CHAR(20) CHARACTER SET tis620 <- ''
TEXT CHARACTER SET tis620 <- REPEAT('สวัสดี',200)
ENUM('สวัสดี','b') CHARACTER SET tis620 <- 'สวัสดี'
ENUM('สวัสดี','b') CHARACTER SET tis620 <- 2
SET('สวัสดี','b') CHARACTER SET tis620 <- 3
VARCHAR(60) CHARACTER SET armscii8 <- 'Հայ'
CHAR(20) CHARACTER SET armscii8 <- 'Հայ'
CHAR(20) CHARACTER SET armscii8 <- '  a b  '
CHAR(20) CHARACTER SET armscii8 <- ''
TEXT CHARACTER SET armscii8 <- REPEAT('Հայ',200)
ENUM('Հայ','b') CHARACTER SET armscii8 <- 'Հայ'
ENUM('Հայ','b') CHARACTER SET armscii8 <- 2
SET('Հայ','b') CHARACTER SET armscii8 <- 3
VARCHAR(60) CHARACTER SET geostd8 <- 'გამარჯობა'
CHAR(20) CHARACTER SET geostd8 <- 'გამარჯობა'
CHAR(20) CHARACTER SET geostd8 <- '  a b  '
CHAR(20) CHARACTER SET geostd8 <- ''
TEXT CHARACTER SET geostd8 <- REPEAT('გამარჯობა',200)
ENUM('გამარჯობა','b') CHARACTER SET geostd8 <- 'გამარჯობა'
ENUM('გამარჯობა','b') CHARACTER SET geostd8 <- 2
SET('გამარჯობა','b') CHARACTER SET geostd8 <- 3
VARCHAR(60) CHARACTER SET gbk <- '汉字漢字ⅰ'
CHAR(20) CHARACTER SET gbk <- '汉字漢字ⅰ'
CHAR(20) CHARACTER SET gbk <- '  a b  '
CHAR(20) CHARACTER SET gbk <- ''
TEXT CHARACTER SET gbk <- REPEAT('汉字漢字ⅰ',200)
ENUM('汉字漢字ⅰ','b') CHARACTER SET gbk <- '汉字漢字ⅰ'
ENUM('汉字漢字ⅰ','b') CHARACTER SET gbk <- 2
SET('汉字漢字ⅰ','b') CHARACTER SET gbk <- 3
VARCHAR(60) CHARACTER SET gb2312 <- '汉字'
CHAR(20) CHARACTER SET gb2312 <- '汉字'
CHAR(20) CHARACTER SET gb2312 <- '  a b  '
CHAR(20) CHARACTER SET gb2312 <- ''
TEXT CHARACTER SET gb2312 <- REPEAT('汉字',200)
ENUM('汉字','b') CHARACTER SET gb2312 <- '汉字'
ENUM('汉字','b') CHARACTER SET gb2312 <- 2
SET('汉字','b') CHARACTER SET gb2312 <- 3
VARCHAR(60) CHARACTER SET big5 <- '漢字許功蓋'
CHAR(20) CHARACTER SET big5 <- '漢字許功蓋'
CHAR(20) CHARACTER SET big5 <- '  a b  '
CHAR(20) CHARACTER SET big5 <- ''
TEXT CHARACTER SET big5 <- REPEAT('漢字許功蓋',200)
ENUM('漢字許功蓋','b') CHARACTER SET big5 <- '漢字許功蓋'
ENUM('漢字許功蓋','b') CHARACTER SET big5 <- 2
SET('漢字許功蓋','b') CHARACTER SET big5 <- 3
VARCHAR(60) CHARACTER SET sjis <- '表示ソ能'
VARCHAR(60) CHARACTER SET sjis <- 'ｱｲｳ'
CHAR(20) CHARACTER SET sjis <- '表示ソ能'
CHAR(20) CHARACTER SET sjis <- '  a b  '
CHAR(20) CHARACTER SET sjis <- ''
TEXT CHARACTER SET sjis <- REPEAT('表示ソ能',200)
ENUM('表示ソ能','b') CHARACTER SET sjis <- '表示ソ能'
ENUM('表示ソ能','b') CHARACTER SET sjis <- 2
SET('表示ソ能','b') CHARACTER SET sjis <- 3
VARCHAR(60) CHARACTER SET cp932 <- '①㈱～表示'
VARCHAR(60) CHARACTER SET cp932 <- '－∥'
CHAR(20) CHARACTER SET cp932 <- '①㈱～表示'
CHAR(20) CHARACTER SET cp932 <- '  a b  '
CHAR(20) CHARACTER SET cp932 <- ''
TEXT CHARACTER SET cp932 <- REPEAT('①㈱～表示',200)
ENUM('①㈱～表示','b') CHARACTER SET cp932 <- '①㈱～表示'
ENUM('①㈱～表示','b') CHARACTER SET cp932 <- 2
SET('①㈱～表示','b') CHARACTER SET cp932 <- 3
VARCHAR(60) CHARACTER SET ujis <- '日本語ｱ'
VARCHAR(60) CHARACTER SET ujis <- '丂'
CHAR(20) CHARACTER SET ujis <- '日本語ｱ'
CHAR(20) CHARACTER SET ujis <- '  a b  '
CHAR(20) CHARACTER SET ujis <- ''
TEXT CHARACTER SET ujis <- REPEAT('日本語ｱ',200)
ENUM('日本語ｱ','b') CHARACTER SET ujis <- '日本語ｱ'
ENUM('日本語ｱ','b') CHARACTER SET ujis <- 2
SET('日本語ｱ','b') CHARACTER SET ujis <- 3
VARCHAR(60) CHARACTER SET eucjpms <- '①㈱日本'
CHAR(20) CHARACTER SET eucjpms <- '①㈱日本'
CHAR(20) CHARACTER SET eucjpms <- '  a b  '
CHAR(20) CHARACTER SET eucjpms <- ''
TEXT CHARACTER SET eucjpms <- REPEAT('①㈱日本',200)
ENUM('①㈱日本','b') CHARACTER SET eucjpms <- '①㈱日本'
ENUM('①㈱日本','b') CHARACTER SET eucjpms <- 2
SET('①㈱日本','b') CHARACTER SET eucjpms <- 3
VARCHAR(60) CHARACTER SET euckr <- '한글똠방각하'
CHAR(20) CHARACTER SET euckr <- '한글똠방각하'
CHAR(20) CHARACTER SET euckr <- '  a b  '
CHAR(20) CHARACTER SET euckr <- ''
TEXT CHARACTER SET euckr <- REPEAT('한글똠방각하',200)
ENUM('한글똠방각하','b') CHARACTER SET euckr <- '한글똠방각하'
ENUM('한글똠방각하','b') CHARACTER SET euckr <- 2
SET('한글똠방각하','b') CHARACTER SET euckr <- 3
VARCHAR(60) CHARACTER SET ucs2 <- '漢字 é'
CHAR(20) CHARACTER SET ucs2 <- '漢字 é'
CHAR(20) CHARACTER SET ucs2 <- '  a b  '
CHAR(20) CHARACTER SET ucs2 <- ''
TEXT CHARACTER SET ucs2 <- REPEAT('漢字 é',200)
ENUM('漢字 é','b') CHARACTER SET ucs2 <- '漢字 é'
ENUM('漢字 é','b') CHARACTER SET ucs2 <- 2
SET('漢字 é','b') CHARACTER SET ucs2 <- 3
VARCHAR(60) CHARACTER SET utf16 <- '漢字😀'
CHAR(20) CHARACTER SET utf16 <- '漢字😀'
CHAR(20) CHARACTER SET utf16 <- '  a b  '
CHAR(20) CHARACTER SET utf16 <- ''
TEXT CHARACTER SET utf16 <- REPEAT('漢字😀',200)
ENUM('漢字é','b') CHARACTER SET utf16 <- '漢字é'
ENUM('漢字é','b') CHARACTER SET utf16 <- 2
SET('漢字é','b') CHARACTER SET utf16 <- 3
VARCHAR(60) CHARACTER SET utf16le <- '漢字😀'
CHAR(20) CHARACTER SET utf16le <- '漢字😀'
CHAR(20) CHARACTER SET utf16le <- '  a b  '
CHAR(20) CHARACTER SET utf16le <- ''
TEXT CHARACTER SET utf16le <- REPEAT('漢字😀',200)
ENUM('漢字é','b') CHARACTER SET utf16le <- '漢字é'
ENUM('漢字é','b') CHARACTER SET utf16le <- 2
SET('漢字é','b') CHARACTER SET utf16le <- 3
VARCHAR(60) CHARACTER SET utf32 <- '漢字😀'
CHAR(20) CHARACTER SET utf32 <- '漢字😀'
CHAR(20) CHARACTER SET utf32 <- '  a b  '
CHAR(20) CHARACTER SET utf32 <- ''
TEXT CHARACTER SET utf32 <- REPEAT('漢字😀',200)
ENUM('漢字é','b') CHARACTER SET utf32 <- '漢字é'
ENUM('漢字é','b') CHARACTER SET utf32 <- 2
SET('漢字é','b') CHARACTER SET utf32 <- 3
VARCHAR(60) CHARACTER SET utf8 <- '漢字é'
CHAR(20) CHARACTER SET utf8 <- '漢字é'
CHAR(20) CHARACTER SET utf8 <- '  a b  '
CHAR(20) CHARACTER SET utf8 <- ''
TEXT CHARACTER SET utf8 <- REPEAT('漢字é',200)
ENUM('漢字é','b') CHARACTER SET utf8 <- '漢字é'
ENUM('漢字é','b') CHARACTER SET utf8 <- 2
SET('漢字é','b') CHARACTER SET utf8 <- 3
GEOMETRY <- ST_GeomFromText('POINT(1 2)')
GEOMETRY <- ST_GeomFromText('POINT(1 2)',4326)
GEOMETRY <- ST_GeomFromText('LINESTRING(0 0,1 1)')
GEOMETRY <- ST_GeomFromText('LINESTRING(0 0,1 1)',4326)
GEOMETRY <- NULL
POINT <- ST_GeomFromText('POINT(-1.5 2.25)')
POINT <- ST_GeomFromText('POINT(-1.5 2.25)',4326)
POINT <- NULL
LINESTRING <- ST_GeomFromText('LINESTRING(0 0,1 1,2 5)')
LINESTRING <- ST_GeomFromText('LINESTRING(0 0,1 1,2 5)',4326)
LINESTRING <- NULL
POLYGON <- ST_GeomFromText('POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,4 2,4 4,2 4,2 2))')
POLYGON <- ST_GeomFromText('POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,4 2,4 4,2 4,2 2))',4326)
POLYGON <- NULL
MULTIPOINT <- ST_GeomFromText('MULTIPOINT(1 1,2 2)')
MULTIPOINT <- ST_GeomFromText('MULTIPOINT(1 1,2 2)',4326)
MULTIPOINT <- NULL
MULTILINESTRING <- ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))')
MULTILINESTRING <- ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))',4326)
MULTILINESTRING <- NULL
MULTIPOLYGON <- ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))')
MULTIPOLYGON <- ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))',4326)
MULTIPOLYGON <- NULL
GEOMETRYCOLLECTION <- ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,2 5))')
GEOMETRYCOLLECTION <- ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,2 5))',4326)
GEOMETRYCOLLECTION <- NULL
"""  # noqa: E501 (an ENUM of 300 labels is one line)
# fmt: on

LINES: list[tuple[str, str]] = [
    (kind, literal)
    for kind, _, literal in (line.partition(" <- ") for line in _LINES.strip().splitlines())
]
