/* SPDX-License-Identifier: MIT */
/* test_ascii.c - compares the classes of all characters with those of <ctype.h> in the C locale. */
#include "base/ascii.h"
#include "lib/test.h"

#include <ctype.h>

static void every_byte_has_its_class_of_the_c_locale(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        assert_int_equal(wr_ascii_is_digit(c), isdigit(byte) != 0);
        assert_int_equal(wr_ascii_is_alpha(c), isalpha(byte) != 0);
        assert_int_equal(wr_ascii_is_alnum(c), isalnum(byte) != 0);
        assert_int_equal(wr_ascii_is_printable(c), isprint(byte) != 0);
        assert_int_equal(wr_ascii_lower(c), (char)tolower(byte));
        assert_int_equal(wr_ascii_hex_value(c) >= 0, isxdigit(byte) != 0);
    }
}

static void hex_digits_have_their_values(void **state)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    (void)state;
    for (int i = 0; digits[i] != '\0'; i++)
        assert_int_equal(wr_ascii_hex_value(digits[i]), i < 16 ? i : i - 6);
}

static void only_letters_are_equal_in_either_case(void **state)
{
    (void)state;
    assert_true(wr_ascii_same("X-Forwarded-For", "x-fORWARDED-fOR", 15));
    assert_true(wr_ascii_same("abc", "abd", 2));
    assert_true(wr_ascii_same("a", "b", 0));
    assert_false(wr_ascii_same("abc", "abd", 3));
    assert_false(wr_ascii_same("@", "`", 1)); /* the bit that makes letters lower case */
    assert_false(wr_ascii_same("\xc4", "\xe4", 1));
}

WEIR_TESTS(test(every_byte_has_its_class_of_the_c_locale), test(hex_digits_have_their_values),
           test(only_letters_are_equal_in_either_case))
