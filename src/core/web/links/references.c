/* SPDX-License-Identifier: MIT */
/* references.c - the named character references that matter in links: those of HTML 4, and all of
 * ASCII.
 *
 * The standard has 2231 names. Links use &amp; and hardly any other; the names left out are arrows,
 * Fraktur and operators. An unknown reference is left as written.
 */
#include "core/web/links/references.h"

struct char_reference {
    char name[WR_CHAR_REFERENCE_NAME_MAX]; /* name without & and ;, padded with NUL */
    uint16_t point;
};

/* Names that old pages write without ';', sorted. */
static const struct char_reference old[] = {
    {"AElig", 0xc6},  {"AMP", 0x26},    {"Aacute", 0xc1}, {"Acirc", 0xc2},  {"Agrave", 0xc0}, {"Aring", 0xc5},
    {"Atilde", 0xc3}, {"Auml", 0xc4},   {"COPY", 0xa9},   {"Ccedil", 0xc7}, {"ETH", 0xd0},    {"Eacute", 0xc9},
    {"Ecirc", 0xca},  {"Egrave", 0xc8}, {"Euml", 0xcb},   {"GT", 0x3e},     {"Iacute", 0xcd}, {"Icirc", 0xce},
    {"Igrave", 0xcc}, {"Iuml", 0xcf},   {"LT", 0x3c},     {"Ntilde", 0xd1}, {"Oacute", 0xd3}, {"Ocirc", 0xd4},
    {"Ograve", 0xd2}, {"Oslash", 0xd8}, {"Otilde", 0xd5}, {"Ouml", 0xd6},   {"QUOT", 0x22},   {"REG", 0xae},
    {"THORN", 0xde},  {"Uacute", 0xda}, {"Ucirc", 0xdb},  {"Ugrave", 0xd9}, {"Uuml", 0xdc},   {"Yacute", 0xdd},
    {"aacute", 0xe1}, {"acirc", 0xe2},  {"acute", 0xb4},  {"aelig", 0xe6},  {"agrave", 0xe0}, {"amp", 0x26},
    {"aring", 0xe5},  {"atilde", 0xe3}, {"auml", 0xe4},   {"brvbar", 0xa6}, {"ccedil", 0xe7}, {"cedil", 0xb8},
    {"cent", 0xa2},   {"copy", 0xa9},   {"curren", 0xa4}, {"deg", 0xb0},    {"divide", 0xf7}, {"eacute", 0xe9},
    {"ecirc", 0xea},  {"egrave", 0xe8}, {"eth", 0xf0},    {"euml", 0xeb},   {"frac12", 0xbd}, {"frac14", 0xbc},
    {"frac34", 0xbe}, {"gt", 0x3e},     {"iacute", 0xed}, {"icirc", 0xee},  {"iexcl", 0xa1},  {"igrave", 0xec},
    {"iquest", 0xbf}, {"iuml", 0xef},   {"laquo", 0xab},  {"lt", 0x3c},     {"macr", 0xaf},   {"micro", 0xb5},
    {"middot", 0xb7}, {"nbsp", 0xa0},   {"not", 0xac},    {"ntilde", 0xf1}, {"oacute", 0xf3}, {"ocirc", 0xf4},
    {"ograve", 0xf2}, {"ordf", 0xaa},   {"ordm", 0xba},   {"oslash", 0xf8}, {"otilde", 0xf5}, {"ouml", 0xf6},
    {"para", 0xb6},   {"plusmn", 0xb1}, {"pound", 0xa3},  {"quot", 0x22},   {"raquo", 0xbb},  {"reg", 0xae},
    {"sect", 0xa7},   {"shy", 0xad},    {"sup1", 0xb9},   {"sup2", 0xb2},   {"sup3", 0xb3},   {"szlig", 0xdf},
    {"thorn", 0xfe},  {"times", 0xd7},  {"uacute", 0xfa}, {"ucirc", 0xfb},  {"ugrave", 0xf9}, {"uml", 0xa8},
    {"uuml", 0xfc},   {"yacute", 0xfd}, {"yen", 0xa5},    {"yuml", 0xff},
};

/* All other names, sorted. */
static const struct char_reference others[] = {
    {"Alpha", 0x391},   {"Beta", 0x392},    {"Chi", 0x3a7},     {"Dagger", 0x2021},  {"Delta", 0x394},
    {"Epsilon", 0x395}, {"Eta", 0x397},     {"Gamma", 0x393},   {"Hat", 0x5e},       {"Iota", 0x399},
    {"Kappa", 0x39a},   {"Lambda", 0x39b},  {"Mu", 0x39c},      {"NewLine", 0xa},    {"Nu", 0x39d},
    {"OElig", 0x152},   {"Omega", 0x3a9},   {"Omicron", 0x39f}, {"Phi", 0x3a6},      {"Pi", 0x3a0},
    {"Prime", 0x2033},  {"Psi", 0x3a8},     {"Rho", 0x3a1},     {"Scaron", 0x160},   {"Sigma", 0x3a3},
    {"Tab", 0x9},       {"Tau", 0x3a4},     {"Theta", 0x398},   {"UnderBar", 0x5f},  {"Upsilon", 0x3a5},
    {"Xi", 0x39e},      {"Yuml", 0x178},    {"Zeta", 0x396},    {"alefsym", 0x2135}, {"alpha", 0x3b1},
    {"and", 0x2227},    {"ang", 0x2220},    {"apos", 0x27},     {"ast", 0x2a},       {"asymp", 0x2248},
    {"bdquo", 0x201e},  {"beta", 0x3b2},    {"bsol", 0x5c},     {"bull", 0x2022},    {"cap", 0x2229},
    {"chi", 0x3c7},     {"circ", 0x2c6},    {"clubs", 0x2663},  {"colon", 0x3a},     {"comma", 0x2c},
    {"commat", 0x40},   {"cong", 0x2245},   {"crarr", 0x21b5},  {"cup", 0x222a},     {"dArr", 0x21d3},
    {"dagger", 0x2020}, {"darr", 0x2193},   {"dash", 0x2010},   {"delta", 0x3b4},    {"diams", 0x2666},
    {"dollar", 0x24},   {"empty", 0x2205},  {"emsp", 0x2003},   {"ensp", 0x2002},    {"epsilon", 0x3b5},
    {"equals", 0x3d},   {"equiv", 0x2261},  {"eta", 0x3b7},     {"euro", 0x20ac},    {"excl", 0x21},
    {"exist", 0x2203},  {"fnof", 0x192},    {"forall", 0x2200}, {"frasl", 0x2044},   {"gamma", 0x3b3},
    {"ge", 0x2265},     {"grave", 0x60},    {"hArr", 0x21d4},   {"harr", 0x2194},    {"hearts", 0x2665},
    {"hellip", 0x2026}, {"hyphen", 0x2010}, {"image", 0x2111},  {"infin", 0x221e},   {"int", 0x222b},
    {"iota", 0x3b9},    {"isin", 0x2208},   {"kappa", 0x3ba},   {"lArr", 0x21d0},    {"lambda", 0x3bb},
    {"lang", 0x27e8},   {"larr", 0x2190},   {"lbrace", 0x7b},   {"lbrack", 0x5b},    {"lceil", 0x2308},
    {"lcub", 0x7b},     {"ldquo", 0x201c},  {"le", 0x2264},     {"lfloor", 0x230a},  {"lowast", 0x2217},
    {"lowbar", 0x5f},   {"loz", 0x25ca},    {"lpar", 0x28},     {"lrm", 0x200e},     {"lsaquo", 0x2039},
    {"lsqb", 0x5b},     {"lsquo", 0x2018},  {"mdash", 0x2014},  {"midast", 0x2a},    {"minus", 0x2212},
    {"mu", 0x3bc},      {"nabla", 0x2207},  {"ndash", 0x2013},  {"ne", 0x2260},      {"ni", 0x220b},
    {"notin", 0x2209},  {"nsub", 0x2284},   {"nu", 0x3bd},      {"num", 0x23},       {"oelig", 0x153},
    {"oline", 0x203e},  {"omega", 0x3c9},   {"omicron", 0x3bf}, {"oplus", 0x2295},   {"or", 0x2228},
    {"otimes", 0x2297}, {"part", 0x2202},   {"percnt", 0x25},   {"period", 0x2e},    {"permil", 0x2030},
    {"perp", 0x22a5},   {"phi", 0x3c6},     {"pi", 0x3c0},      {"piv", 0x3d6},      {"plus", 0x2b},
    {"prime", 0x2032},  {"prod", 0x220f},   {"prop", 0x221d},   {"psi", 0x3c8},      {"quest", 0x3f},
    {"rArr", 0x21d2},   {"radic", 0x221a},  {"rang", 0x27e9},   {"rarr", 0x2192},    {"rbrace", 0x7d},
    {"rbrack", 0x5d},   {"rceil", 0x2309},  {"rcub", 0x7d},     {"rdquo", 0x201d},   {"real", 0x211c},
    {"rfloor", 0x230b}, {"rho", 0x3c1},     {"rlm", 0x200f},    {"rpar", 0x29},      {"rsaquo", 0x203a},
    {"rsqb", 0x5d},     {"rsquo", 0x2019},  {"sbquo", 0x201a},  {"scaron", 0x161},   {"sdot", 0x22c5},
    {"semi", 0x3b},     {"sigma", 0x3c3},   {"sigmaf", 0x3c2},  {"sim", 0x223c},     {"sol", 0x2f},
    {"spades", 0x2660}, {"sub", 0x2282},    {"sube", 0x2286},   {"sum", 0x2211},     {"sup", 0x2283},
    {"supe", 0x2287},   {"tau", 0x3c4},     {"there4", 0x2234}, {"theta", 0x3b8},    {"thetasym", 0x3d1},
    {"thinsp", 0x2009}, {"tilde", 0x2dc},   {"trade", 0x2122},  {"uArr", 0x21d1},    {"uarr", 0x2191},
    {"upsih", 0x3d2},   {"upsilon", 0x3c5}, {"verbar", 0x7c},   {"vert", 0x7c},      {"weierp", 0x2118},
    {"xi", 0x3be},      {"zeta", 0x3b6},    {"zwj", 0x200d},    {"zwnj", 0x200c},
};

static uint32_t find_reference(const struct char_reference *list, size_t count,
                               const char name[WR_CHAR_REFERENCE_NAME_MAX])
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(name, list[middle].name, WR_CHAR_REFERENCE_NAME_MAX);
        if (order == 0)
            return list[middle].point;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

uint32_t wr_char_reference_point(struct wr_span name, bool *ret_is_old)
{
    char padded[WR_CHAR_REFERENCE_NAME_MAX] = {0};

    *ret_is_old = false;
    if (name.bytes == 0 || name.bytes > sizeof padded)
        return 0;
    memcpy(padded, name.data, name.bytes);
    uint32_t point = find_reference(old, sizeof old / sizeof old[0], padded);
    *ret_is_old = point != 0;
    return point != 0 ? point : find_reference(others, sizeof others / sizeof others[0], padded);
}
