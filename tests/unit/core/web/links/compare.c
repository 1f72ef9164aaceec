/* SPDX-License-Identifier: MIT */
/* compare.c - prints how the links that our scanner finds in files differ from those of gumbo:
 * compare FILE... */
#include "finds.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    static struct finds ours, theirs;
    static char page[1 << 20];
    int differing = 0;

    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        size_t bytes = file == NULL ? 0 : fread(page, 1, sizeof page, file);
        if (file != NULL)
            fclose(file);
        finds_scan(&ours, page, bytes, 0);
        if (!finds_judge(&theirs, page, bytes)) {
            printf("%s: the judge died\n", argv[i]);
        } else if (!finds_same(&ours, &theirs)) {
            printf("%s:\n", argv[i]);
            finds_print_difference(&ours, &theirs);
            differing++;
        }
    }
    return differing > 0;
}
