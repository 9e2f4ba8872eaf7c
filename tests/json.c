/*
 * JSON: what is refused and in which words, what is read, and that writing is exact.
 *
 * Bad documents stand in one table with their message. Truncated and damaged documents, and the
 * shared trace snippets, need only give a document or one clear line.
 */
#include "src/json.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        /* Truncated, or followed by something. */
        {"", "f: line 1, column 1: text ends before it is complete"},
        {"  \n ", "f: line 2, column 2: text ends before it is complete"},
        {"{\"a\": 1", "f: line 1, column 8: text ends before it is complete"},
        {"[1,\n 2,\n", "f: line 3, column 1: text ends before it is complete"},
        {"{\"a\": \"b", "f: line 1, column 7: string is not closed"},
        {"{\"a\": \"b\\", "f: line 1, column 7: string is not closed"},
        {"{} x", "f: line 1, column 4: 'x' after the end of the document"},
        {"[1]\n]", "f: line 2, column 1: ']' after the end of the document"},
        /* Malformed. */
        {"[1 2]", "f: line 1, column 4: '2' does not belong here"},
        {"{\"a\"}", "f: line 1, column 5: '}' does not belong here"},
        {"{a: 1}", "f: line 1, column 2: 'a' where a key in double quotes has to be"},
        {"{\"a\": 1, 2}", "f: line 1, column 10: '2' where a key in double quotes has to be"},
        {"{1.5}", "f: line 1, column 2: '1.5' where a key in double quotes has to be"},
        {"{\"a\": [1, 2]]", "f: line 1, column 13: ']' does not belong here"},
        {"[1,, 2]", "f: line 1, column 4: ',' does not belong here"},
        {"[1, 2,]", "f: line 1, column 7: ']' after a comma, remove the comma"},
        {"{\"a\": 1,\n}", "f: line 2, column 1: '}' after a comma, remove the comma"},
        {"[\"\xc3\xa9\", tru]", "f: line 1, column 7: 'tru' does not belong here"},
        {"{\"x\": NaN}", "f: line 1, column 7: 'NaN' does not belong here"},
        {"[Infinity]", "f: line 1, column 2: 'Infinity' does not belong here"},
        {"\x01{}", "f: line 1, column 1: byte 0x01 outside of a string"},
        /* Numbers. */
        {"[-Infinity]", "f: line 1, column 2: '-Infinity' is not a JSON number"},
        {"[012]", "f: line 1, column 2: '012' is not a JSON number"},
        {"[1.]", "f: line 1, column 2: '1.' is not a JSON number"},
        {"[1e]", "f: line 1, column 2: '1e' is not a JSON number"},
        {"[-]", "f: line 1, column 2: '-' is not a JSON number"},
        {"[1-2]", "f: line 1, column 2: '1-2' is not a JSON number"},
        {"[+1]", "f: line 1, column 2: '+1' does not belong here"},
        {"[0x10]", "f: line 1, column 3: 'x10' does not belong here"},
        {"[1e999]", "f: line 1, column 2: number '1e999' is too large"},
        {"[0.0000000000000000000000000000000000000000000000000000000000000001]",
         "f: line 1, column 2: number of 66 characters, at most 63 are allowed"},
        /* Strings. */
        {"[\"a\\u0000b\"]", "f: line 1, column 4: '\\u0000' in a string, remove it"},
        {"{\"a\\u0000b\": 1}", "f: line 1, column 4: '\\u0000' in a string, remove it"},
        {"[\"\\u00zz\"]", "f: line 1, column 3: '\\u' without four hexadecimal digits"},
        {"[\"\\x\"]", "f: line 1, column 3: '\\x' does not belong here"},
        {"[\"\\udc00\"]", "f: line 1, column 3: '\\udc00' does not belong here"},
        {"[\"\\ud800\"]", "f: line 1, column 3: '\\ud800' does not belong here"},
        {"[\"a\nb\"]",
         "f: line 1, column 4: control character 0x0a in a string, is a '\"' missing?"},
        {"[\"\xff\"]", "f: line 1, column 3: byte 0xff is not UTF-8"},
        {"[\"\xc3(\"]", "f: line 1, column 3: byte 0xc3 is not UTF-8"},
        {"[\"\xc0\xaf\"]", "f: line 1, column 3: byte 0xc0 is not UTF-8"},         /* too long */
        {"[\"\xed\xa0\x80\"]", "f: line 1, column 3: byte 0xed is not UTF-8"},     /* surrogate */
        {"[\"\xf4\x90\x80\x80\"]", "f: line 1, column 3: byte 0xf4 is not UTF-8"}, /* 0x110000 */
        {"[\xc3\xa9]", "f: line 1, column 2: byte 0xc3 outside of a string"},
        /* Well-formed, and ambiguous all the same. */
        {"{\"a\": 1, \"b\": 2, \"a\": 3}", "f: key 'a' is there twice, remove one"},
        {"{\"a\": [0, {\"b\": {\"c\": 1, \"\\u0063\": 2}}]}",
         "f: a[1].b: key 'c' is there twice, remove one"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct json_doc doc = {0};
        struct err err = {0};
        enum status status = json_parse(cases[i].text, "f", &doc, &err);
        is_str(err.text, cases[i].message, "bad document %zu is refused with its place", i);
        ok(status == STATUS_INPUT && err.status == STATUS_INPUT && !doc.root && !doc.name,
           "and nothing of it is given out");
    }
}

static void test_accepted(void)
{
    static const char *const texts[] = {
        "0",
        " {} \r\n\t",
        "[-0.5e-3, 1E+2, 10, -0]",
        "{\"a\": 1, \"A\": 2}",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\ud83d\\ude00\"]",
        "[\"\xf0\x9f\x98\x80\"]",
        "\xef\xbb\xbf[1]",
        "[123456789012345678901234567890]",
        "[{\"a\": 1}, {\"a\": 1}]",
    };
    for (size_t i = 0; i < LENGTH(texts); i++) {
        struct json_doc doc = {0};
        struct err err = {0};
        bool good = !json_parse(texts[i], "f", &doc, &err);
        if (!ok(good, "good document %zu is accepted", i))
            tap_note("%s", err.text);
        json_release(&doc);
    }
}

static enum status parse_levels(size_t levels, struct err *err)
{
    char *text = malloc(2 * levels + 1);
    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    text[2 * levels] = '\0';
    struct json_doc doc = {0};
    enum status status = json_parse(text, "f", &doc, err);
    json_release(&doc);
    free(text);
    return status;
}

static void test_depth(void)
{
    struct err err = {0};
    is_int(parse_levels(100, &err), STATUS_OK, "100 levels are read");
    is_int(parse_levels(101, &err), STATUS_INPUT, "101 are not");
    is_str(err.text, "f: line 1, column 101: more than 100 levels deep", "and the first is named");
    is_int(parse_levels(1000000, &err), STATUS_INPUT, "a million levels do no harm");
}

static const char *const model =
    "{\n"
    "  \"name\": \"tiny\", \"heads\": 8, \"eps\": 1e-05, \"tied\": false, \"none\": null,\n"
    "  \"Name\": \"another\",\n"
    "  \"layers\": [{\"name\": \"a\", \"size\": 3}, {\"name\": \"b\", \"size\": -1}],\n"
    "  \"half\": 0.5, \"large\": 9007199254740991, \"larger\": 9007199254740993,\n"
    "  \"zero\": 0, \"one\": 1, \"lowest\": -1e300\n"
    "}\n";

static void test_values(void)
{
    struct json_doc doc;
    if (!ok(!json_parse(model, "m.json", &doc, NULL), "the document of these checks is good"))
        return;
    struct json_at root = json_root(&doc);
    const char *name = NULL;
    uint64_t heads = 0, large = 0;
    double eps = 0;
    bool tied = true;
    ok(!json_get_string(&root, "name", &name, NULL), "a string is read");
    is_str(name, "tiny", "by its key with the case that was asked for");
    ok(!json_get_u64(&root, "heads", 8, &heads, NULL) && heads == 8, "an integer at its maximum");
    ok(!json_get_u64(&root, "large", UINT64_MAX, &large, NULL), "2^53 - 1 is read");
    is_int(large, 9007199254740991, "exactly");
    ok(!json_get_double(&root, "eps", &eps, NULL) && eps == 1e-05, "a double is read");
    ok(!json_get_bool(&root, "tied", &tied, NULL) && !tied, "a boolean is read");
    ok(json_has(&root, "heads"), "a key is there");
    ok(!json_has(&root, "HEADS"), "in another case it is not");
    ok(!json_has(&root, "none"), "null is as good as nothing");
    ok(json_is_object(&root) && !json_is_array(&root), "kinds are told apart");
    json_release(&doc);
}

static void test_wrong_values(void)
{
    static const struct {
        const char *key;
        uint64_t max;
        const char *message;
    } cases[] = {
        {"head", 9, "m.json: missing key 'head'"},
        {"none", 9, "m.json: missing key 'none'"},
        {"name", 9, "m.json: name: a whole number is needed, not a string"},
        {"tied", 9, "m.json: tied: a whole number is needed, not a boolean"},
        {"layers", 9, "m.json: layers: a whole number is needed, not an array"},
        {"half", 9, "m.json: half: a whole number of 0 or more is needed, not 0.5"},
        {"lowest", 9, "m.json: lowest: a whole number of 0 or more is needed, not -1e+300"},
        {"heads", 7, "m.json: heads: 8 is too large, 7 is the most"},
        {"larger", UINT64_MAX,
         "m.json: larger: 9007199254740992 is too large to be read exactly, 2^53 - 1 is the most"},
    };
    struct json_doc doc;
    if (!ok(!json_parse(model, "m.json", &doc, NULL), "the document of these checks is good"))
        return;
    struct json_at root = json_root(&doc);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct err err = {0};
        uint64_t value = 99;
        enum status status = json_get_u64(&root, cases[i].key, cases[i].max, &value, &err);
        is_str(err.text, cases[i].message, "integer '%s' is refused", cases[i].key);
        ok(status == STATUS_INPUT && value == 99, "and '%s' leaves the result alone", cases[i].key);
    }
    struct err err = {0};
    uint64_t count = 0;
    is_int(json_get_count(&root, "zero", 9, &count, &err), STATUS_INPUT, "0 is no count");
    is_str(err.text, "m.json: zero: a whole number of 1 or more is needed, not 0",
           "and the message has the least that is one");
    ok(!json_get_count(&root, "one", 9, &count, NULL) && count == 1, "1 is a count");

    const char *string = NULL;
    double number = 0;
    bool truth = false;
    json_get_string(&root, "heads", &string, &err);
    is_str(err.text, "m.json: heads: a string is needed, not a number", "a number is no string");
    json_get_double(&root, "name", &number, &err);
    is_str(err.text, "m.json: name: a number is needed, not a string", "a string is no number");
    json_get_bool(&root, "heads", &truth, &err);
    is_str(err.text, "m.json: heads: a boolean is needed, not a number", "a number is no boolean");
    json_release(&doc);
}

static void test_walk(void)
{
    struct json_doc doc;
    struct json_at layers, size;
    struct err err = {0};
    if (!ok(!json_parse(model, "m.json", &doc, NULL), "the document of these checks is good"))
        return;
    struct json_at root = json_root(&doc);
    ok(!json_get(&root, "layers", &layers, NULL), "an array is found");
    int n = 0;
    for (struct json_at it = json_first(&layers); it.node; it = json_next(&it), n++) {
        if (n == 1) {
            uint64_t value;
            is_str(json_key(&it), "", "an element of an array has no key");
            json_get_u64(&it, "size", 9, &value, &err);
            is_str(err.text,
                   "m.json: layers[1].size: a whole number of 0 or more is needed, not -1",
                   "a complaint names the way to its place");
            json_fail(&it, &err, "layer %d is odd", n);
            is_str(err.text, "m.json: layers[1]: layer 1 is odd", "so does one of our own");
        }
    }
    is_int(n, 2, "all elements are seen");

    struct text keys;
    text_init(&keys);
    for (struct json_at it = json_first(&root); it.node; it = json_next(&it))
        text_add(&keys, "%s=%s ", json_key(&it), it.path);
    is_str(keys.at,
           "name=name heads=heads eps=eps tied=tied none=none Name=Name layers=layers half=half "
           "large=large larger=larger zero=zero one=one lowest=lowest ",
           "an object's elements come in the order of the file");
    text_release(&keys);

    json_get(&root, "heads", &size, NULL);
    ok(!json_first(&size).node, "a number has no elements");
    is_int(json_get(&size, "x", &layers, &err), STATUS_INPUT, "and no keys");
    is_str(err.text, "m.json: heads: an object is needed, not a number", "which is said");
    json_release(&doc);
}

static void test_long_path(void)
{
    char text[400], key[301];
    memset(key, 'k', 300);
    key[300] = '\0';
    snprintf(text, sizeof(text), "{\"%s\": {\"a\": 1}, \"b\": 2}", key);
    struct json_doc doc;
    ok(!json_parse(text, "f", &doc, NULL), "a long key is read");
    struct json_at root = json_root(&doc);
    struct json_at first = json_first(&root);
    is_int(strlen(first.path), sizeof(first.path) - 1, "a long path is cut");
    is_str(first.path + sizeof(first.path) - 5, "k...", "and shows it");
    struct json_at next = json_next(&first);
    is_str(next.path, "b", "its neighbour's is not");
    struct json_at inner;
    ok(!json_get(&first, "a", &inner, NULL), "what is below a cut path can be reached");
    json_release(&doc);
}

/* A document, or one line of text. */
static bool is_clear(enum status status, const struct json_doc *doc, const struct err *err)
{
    if (status == STATUS_OK)
        return doc->root;
    bool clear = status == STATUS_INPUT && strlen(err->text) > 10;
    for (const char *at = err->text; *at; at++)
        clear = clear && (unsigned char)*at >= ' ';
    return clear;
}

static void test_damage(void)
{
    size_t length = strlen(model), whole = strlen(model) - 1;
    char *text = malloc(length + 1);
    int accepted = 0, unclear = 0;
    for (size_t cut = 0; cut < whole; cut++) {
        struct json_doc doc = {0};
        struct err err = {0};
        memcpy(text, model, cut);
        text[cut] = '\0';
        accepted += !json_parse(text, "f", &doc, &err);
        unclear += !is_clear(err.status, &doc, &err);
        json_release(&doc);
    }
    is_int(accepted, 0, "no document that lost its end is accepted");
    is_int(unclear, 0, "each gives one clear line");

    uint64_t state = tap_seed(3);
    unclear = 0;
    for (int i = 0; i < 20000; i++) {
        struct json_doc doc = {0};
        struct err err = {0};
        memcpy(text, model, length + 1);
        for (uint64_t k = 0; k <= tap_below(&state, 3); k++)
            text[tap_below(&state, length)] = (char)tap_below(&state, 256);
        enum status status = json_parse(text, "f", &doc, &err);
        unclear += !is_clear(status, &doc, &err);
        json_release(&doc);
    }
    is_int(unclear, 0, "damaged documents are read or give one clear line");
    free(text);
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file))
        tap_bail("cannot write a temporary file");
}

static void test_files(void)
{
    char folder[] = "json-XXXXXX", path[100], want[200];
    if (!mkdtemp(folder))
        tap_bail("cannot make a temporary folder");
    struct json_doc doc = {0};
    struct err err = {0};

    is_int(json_read_file(folder, &doc, &err), STATUS_INPUT, "a folder is no file");
    snprintf(want, sizeof(want), "cannot read '%s': Is a directory", folder);
    is_str(err.text, want, "and is called one");
    snprintf(path, sizeof(path), "%s/a.json", folder);
    is_int(json_read_file(path, &doc, &err), STATUS_INPUT, "a missing file is an error");
    snprintf(want, sizeof(want), "cannot read '%s': No such file or directory", path);
    is_str(err.text, want, "that names it");

    write_file(path, "[1,\n2\0]", 7);
    is_int(json_read_file(path, &doc, &err), STATUS_INPUT, "a zero byte does not end a file");
    snprintf(want, sizeof(want), "%s: line 2, column 2: byte 0x00 outside of a string", path);
    is_str(err.text, want, "it is an error at its place");

    write_file(path, model, strlen(model));
    ok(!json_read_file(path, &doc, &err), "a good file is read");
    is_str(doc.name, path, "and keeps its name");
    json_release(&doc);

    size_t length = 300000;
    char *blanks = malloc(length);
    memset(blanks, ' ', length);
    blanks[length - 1] = '7';
    write_file(path, blanks, length);
    ok(!json_read_file(path, &doc, &err), "a file of many buffers is read");
    json_release(&doc);
    free(blanks);

    char endless[3000];
    memset(endless, 'd', sizeof(endless));
    endless[sizeof(endless) - 1] = '\0';
    json_read_file(endless, &doc, &err);
    ok(strstr(err.text, "File name too long"), "a path of any length leaves room for the reason");
    unlink(path);
    rmdir(folder);
}

static void test_writing(void)
{
    struct cJSON *root = json_new_object();
    json_add_u64(root, "most", UINT64_MAX);
    json_add_int(root, "least", INT64_MIN);
    json_add_u64(root, "odd", UINT64_C(9007199254740993));
    json_add_decimal(root, "pct", 0.1 + 0.2, 3);
    json_add_decimal(root, "nan", NAN, 1);
    json_add_number(root, "tiny", 1.0 / 3e9, 6);
    json_add_number(root, "some", -1234.5678, 6);
    json_add_number(root, "many", 1e21, 6);
    json_add_number(root, "zero", 0, 6);
    json_add_number(root, "inf", INFINITY, 6);
    json_add_real(root, "third", 1.0 / 3);
    json_add_real(root, "sum", 0.1 + 0.2);
    json_add_real(root, "small", -2.5e-7);
    json_add_real(root, "whole", 123456789012345);
    json_add_real(root, "none", -INFINITY);
    json_add_bool(root, "fits", true);
    json_add_string(root, "text", "a\"\n\xc3\xa9\xff\xc3");
    json_add_string(root, "empty", "");
    struct cJSON *list = json_add_array(root, "list");
    json_add_int(list, NULL, -1);
    json_add_string(json_add_object(list, NULL), "k", "v");

    struct text text;
    text_init(&text);
    text_add(&text, "> ");
    json_print(root, &text);
    is_str(text.at,
           "> {\n"
           "\t\"most\":\t18446744073709551615,\n"
           "\t\"least\":\t-9223372036854775808,\n"
           "\t\"odd\":\t9007199254740993,\n"
           "\t\"pct\":\t0.300,\n"
           "\t\"nan\":\tnull,\n"
           "\t\"tiny\":\t0.000000000333333,\n"
           "\t\"some\":\t-1234.57,\n"
           "\t\"many\":\t1000000000000000000000,\n"
           "\t\"zero\":\t0.00000,\n"
           "\t\"inf\":\tnull,\n"
           "\t\"third\":\t0.333333333333333,\n"
           "\t\"sum\":\t0.3,\n"
           "\t\"small\":\t-0.00000025,\n"
           "\t\"whole\":\t123456789012345,\n"
           "\t\"none\":\tnull,\n"
           "\t\"fits\":\ttrue,\n"
           "\t\"text\":\t\"a\\\"\\n\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\",\n"
           "\t\"empty\":\t\"\",\n"
           "\t\"list\":\t[-1, {\n"
           "\t\t\t\"k\":\t\"v\"\n"
           "\t\t}]\n"
           "}\n",
           "numbers are exact, text is UTF-8, the order is kept, and text before it stays");
    struct json_doc doc;
    ok(!json_parse(text.at + 2, "f", &doc, NULL), "what is written can be read");
    json_release(&doc);
    text_release(&text);
    json_print_line(list, &text);
    is_str(text.at, "[-1,{\"k\":\"v\"}]", "a part of it can stand on one line");
    text_release(&text);
    json_free(root);
}

static void test_shared_cases(void)
{
    const char *shared = tap_shared("cases/json");
    char folder[4096], path[5000];
    snprintf(folder, sizeof(folder), "%s", shared ? shared : "");
    struct dirent **entries = NULL;
    int n = shared ? scandir(folder, &entries, NULL, alphasort) : -1;
    if (n < 0) {
        tap_skip("no shared cases here");
        return;
    }
    int files = 0;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        struct json_doc doc = {0};
        struct err err = {0};
        if (name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, name);
            enum status status = json_read_file(path, &doc, &err);
            ok(is_clear(status, &doc, &err), "%s is read or gives one clear line", name);
            if (status)
                tap_note("%s", err.text);
            files++;
        }
        json_release(&doc);
        free(entries[i]);
    }
    free(entries);
    ok(files > 0, "there are shared cases");
}

int main(void)
{
    test_refused();
    test_accepted();
    test_depth();
    test_values();
    test_wrong_values();
    test_walk();
    test_long_path();
    test_damage();
    test_files();
    test_writing();
    test_shared_cases();
    return tap_done();
}
