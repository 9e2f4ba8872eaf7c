/*
 * Text, errors and the names of element types: what the rest of the program leans on.
 *
 * Tables of cases for patterns, names and numbers; a property test for numbers that are written
 * and read back.
 */
#include "src/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/dtype.h"
#include "src/err.h"
#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void test_patterns(void)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"layers.*", "layers.0.attention", true}, /* '*' runs over dots */
        {"layers.?", "layers.7", true},
        {"layers.?", "layers.17", false},
        {"layers.?", "layers.", false},
        {"*.w1", "layers.0.mlp.w1", true},
        {"*.w1", "layers.0.mlp.w1.bias", false},
        {"*a*b", "aabab", true}, /* the first 'b' is not the end */
        {"a*b*c", "axbxbxc", true},
        {"a*b*c", "axcxb", false},
        {"*", "", true},
        {"**", "x", true},
        {"", "", true},
        {"", "x", false},
        {"x", "", false},
        {"[a]", "a", false}, /* no sets: brackets are letters */
        {"[a]", "[a]", true},
        {"Norm", "norm", false},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        ok(text_matches(cases[i].pattern, cases[i].text) == cases[i].matches, "'%s' %s '%s'",
           cases[i].pattern, cases[i].matches ? "matches" : "does not match", cases[i].text);
}

static void test_patterns_are_quick(void)
{
    char stars[61], text[2001];
    for (size_t i = 0; i < 60; i += 2)
        memcpy(stars + i, "*a", 3);
    memset(text, 'a', 2000);
    text[1999] = 'b';
    text[2000] = '\0';
    ok(!text_matches(stars, text), "thirty stars over 2000 letters take no exponential time");
}

static void test_nearest(void)
{
    static const char *const names[] = {"llama2-7b", "llama2-70b", "llama3-8b", "h100-sxm", "toy"};
    static const struct {
        const char *name;
        int nearest;
        const char *why;
    } cases[] = {
        {"llama2-7b", 0, "itself"},
        {"LLAMA3-8B", 2, "case does not count"},
        {"lama2-7b", 0, "a letter is missing"},
        {"llama2-07b", 0, "one step for either: the first one wins"},
        {"llama3-b8", 2, "neighbours swapped"},
        {"h100sxm", 3, "a dash is missing"},
        {"tyo", 4, "a swap is one step"},
        {"to", 4, "the beginning of one name"},
        {"H100", 3, "the same, far from it in letters"},
        {"llama2-7", 0, "the beginning of two: the nearer one wins"},
        {"llama", -1, "the beginning of three, near to none"},
        {"h", -1, "a single letter begins nothing"},
        {"gpt2", -1, "nothing is near"},
        {"", -1, "nothing was given"},
        {"xyz", -1, "no letter in its place is no likeness"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        is_int(text_nearest(cases[i].name, names, LENGTH(names)), cases[i].nearest,
               "nearest to '%s': %s", cases[i].name, cases[i].why);

    char endless[5001];
    memset(endless, 'a', 5000);
    endless[5000] = '\0';
    is_int(text_nearest(endless, names, LENGTH(names)), -1, "5000 letters are near to none");
    is_int(text_nearest("toy", names, 0), -1, "no names, nothing near");
}

static void test_beginning_before_distance(void)
{
    static const char *const options[] = {"ac", "layers", "gpus", "prefetch", "prefetch-backward"};
    is_int(text_nearest("lay", options, LENGTH(options)), 1,
           "'lay' begins layers, although ac is two steps away");
    is_int(text_nearest("prefetch-", options, LENGTH(options)), 4,
           "'prefetch-' begins one name, although another is one step away");
}

static void test_distance_allowed(void)
{
    static const char *const one[] = {"attention.output"};
    is_int(text_nearest("attntion.outpt", one, 1), 0, "two letters of fourteen may be missing");
    is_int(text_nearest("atntin.outp", one, 1), -1, "five letters may not: 11 / 3 = 3 is the most");
    is_int(text_nearest("attention.ouXXXX", one, 1), 0, "four of sixteen are within a third");
    static const char *const tiny[] = {"abcde"};
    is_int(text_nearest("abcXX", tiny, 1), 0, "two steps are always allowed");
    is_int(text_nearest("abXXX", tiny, 1), -1, "three are not, in a short name");
}

static void test_numbers(void)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"42", true, 42},
        {"007", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1e3", false, 0},
        {"0x10", false, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        uint64_t value = 99;
        bool good = text_to_u64(cases[i].text, &value);
        ok(good == cases[i].good && value == (good ? cases[i].value : 99), "number '%s' is %s",
           cases[i].text, cases[i].good ? "read" : "refused, the result untouched");
    }
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t bytes;
    } cases[] = {
        {"1024", true, 1024},
        {"512B", true, 512},
        {"1KiB", true, 1024},
        {"1kB", true, 1000},
        {"512MiB", true, 536870912},
        {"72GiB", true, 77309411328},
        {"72 GiB", true, 77309411328}, /* as text_bytes() writes it */
        {"80GB", true, 80000000000},
        {"1.5TiB", true, 1649267441664},
        {"0.1GiB", true, 107374182}, /* 107374182.4 */
        {"0.999999TiB", true, 1099510528264}, /* 1099510528264.4 */
        {"16777215TiB", true, UINT64_C(16777215) << 40},
        {"16777216TiB", false, 0}, /* 2^64 */
        {"1.5", false, 0},
        {"1.5B", false, 0},
        {"1.GiB", false, 0},
        {".5GiB", false, 0},
        {"1.1234567GiB", false, 0},
        {"72gib", false, 0},
        {"72Gb", false, 0},
        {"72 GiB ", false, 0},
        {"72  GiB", false, 0},
        {"72 ", false, 0},
        {"GiB", false, 0},
        {"-1GiB", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        uint64_t bytes = 99;
        bool good = text_to_bytes(cases[i].text, &bytes);
        ok(good == cases[i].good, "size '%s' is %s", cases[i].text,
           cases[i].good ? "read" : "refused");
        is_int(bytes, good ? cases[i].bytes : 99, "and '%s' gives its bytes", cases[i].text);
    }
}

static void test_formats(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1048524, "1023.9 KiB"},
        {1048525, "1.0 MiB"}, /* 1023.95 KiB round up into the next unit */
        {18575846604, "17.3 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    static const struct {
        int64_t ns;
        const char *text;
    } times[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1000, "1.000 us"},
        {999999, "999.999 us"},
        {12345499, "12.345 ms"},
        {12345500, "12.346 ms"},
        {999999499, "999.999 ms"},
        {999999500, "1.000 s"},
        {-12345000, "-12.345 ms"},
        {3600000000000, "3600.000 s"},
        {INT64_MIN, "-9223372036.855 s"},
    };
    static const struct {
        uint64_t n;
        const char *text;
    } counts[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {6738415616, "6,738,415,616"},
        {UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    char buffer[32];
    for (size_t i = 0; i < LENGTH(sizes); i++)
        is_str(text_bytes(sizes[i].bytes, buffer), sizes[i].text, "%" PRIu64 " bytes in words",
               sizes[i].bytes);
    for (size_t i = 0; i < LENGTH(times); i++)
        is_str(text_ns(times[i].ns, buffer), times[i].text, "%" PRId64 " ns in words", times[i].ns);
    for (size_t i = 0; i < LENGTH(counts); i++)
        is_str(text_count(counts[i].n, buffer), counts[i].text, "%" PRIu64 " with commas",
               counts[i].n);
}

static void test_numbers_come_back(void)
{
    uint64_t state = tap_seed(1);
    int wrong = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t n = tap_random(&state) >> tap_below(&state, 64), plain = 0, near = 0;
        char written[32];
        snprintf(written, sizeof(written), "%" PRIu64, n);
        bool good = text_to_u64(written, &plain) && plain == n;

        /* One decimal: half a tenth of the unit, which is at most n itself, may be lost. */
        n >>= 16;
        good = good && text_to_bytes(text_bytes(n, written), &near);
        uint64_t lost = near > n ? near - n : n - near;
        if (!good || lost > n / 20 + 1) {
            tap_note("%" PRIu64 " as '%s' gives %" PRIu64, n, written, near);
            wrong++;
        }
    }
    is_int(wrong, 0, "numbers and sizes that are written can be read");
}

static void test_text(void)
{
    struct text text;
    text_init(&text);
    ok(!text.at && text.length == 0, "a new text is nothing");
    text_add(&text, "%s", "");
    is_str(text.at, "", "adding nothing makes it an empty string");
    text_add(&text, "a %d\n\xce\xbc", 7);
    text_pad(&text, 3);
    text_add(&text, "|");
    is_str(text.at, "a 7\n\xce\xbc  |", "padding counts characters of the current line");
    text_pad(&text, 2);
    is_int(text.length, 9, "a line that is long enough is left alone");

    text_release(&text);
    for (int i = 0; i < 10000; i++)
        text_add(&text, "%04d", i);
    is_int(text.length, 40000, "a text grows");
    is_str(text.at + 39996, "9999", "and is terminated");
    text_release(&text);
    ok(!text.at, "a released text is a new one");
}

static void test_err(void)
{
    struct err err;
    is_int(err_set(&err, STATUS_USAGE, "no model '%s'", "x\ny"), STATUS_USAGE,
           "err_set returns the status");
    is_str(err.text, "no model 'x?y'", "an error is one line whatever is in it");
    is_int(err_prefix(&err, "line %d", 3), STATUS_USAGE, "a prefix keeps the status");
    is_str(err.text, "line 3: no model 'x?y'", "and stands in front");

    err_set(&err, STATUS_NO, "%s!", err.text);
    is_str(err.text, "line 3: no model 'x?y'!", "an error can be made from itself");
    err_set(&err, STATUS_INPUT, "%0700d", 1);
    is_int(strlen(err.text), sizeof(err.text) - 1, "a long text is cut");
    is_str(err.text + sizeof(err.text) - 5, "0...", "and says so");

    is_int(err_set(NULL, STATUS_DB, "unheard"), STATUS_DB, "nobody has to listen");
    ok(err_prefix(NULL, "unheard") != STATUS_OK, "a failure stays one where nobody listens");
}

static void test_dtypes(void)
{
    is_int(dtype_bytes(DTYPE_FP32), 4, "fp32 has 4 bytes");
    is_int(dtype_bytes(DTYPE_BF16), 2, "bf16 has 2 bytes");
    is_str(dtype_name(DTYPE_BF16), "bf16", "a type has a name");
}

int main(void)
{
    test_patterns();
    test_patterns_are_quick();
    test_nearest();
    test_beginning_before_distance();
    test_distance_allowed();
    test_numbers();
    test_sizes();
    test_formats();
    test_numbers_come_back();
    test_text();
    test_err();
    test_dtypes();
    return tap_done();
}
