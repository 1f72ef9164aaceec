/* SPDX-License-Identifier: MIT */
/* judge.c - finds the links of a page in the tree that gumbo builds. */
#include "finds.h"

#include <gumbo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *value_of(const GumboElement *element, const char *name)
{
    const GumboAttribute *attribute = gumbo_get_attribute(&element->attributes, name);
    return attribute == NULL ? NULL : attribute->value;
}

static bool has_word(const char *list, const char *word)
{
    for (size_t bytes; list != NULL && *list != '\0'; list += bytes) {
        list += strspn(list, " \t\n\f\r");
        bytes = strcspn(list, " \t\n\f\r");
        if (bytes == strlen(word) && strncasecmp(list, word, bytes) == 0)
            return true;
    }
    return false;
}

static void add(struct finds *finds, const char *kind, const GumboElement *element, const char *name)
{
    const char *url = value_of(element, name);
    bool has_rel = strcmp(kind, "a") == 0 || strcmp(kind, "area") == 0 || strcmp(kind, "link") == 0;

    if (url != NULL)
        finds_add(finds, kind, has_rel && has_word(value_of(element, "rel"), "nofollow"), url, strlen(url));
}

/* Adds the candidates of a srcset. A candidate is a word and the text up to a comma outside
 * parentheses. A word that ends in commas is a candidate alone. */
static void add_candidates(struct finds *finds, const char *list)
{
    while (list != NULL && *(list += strspn(list, " \t\n\f\r,")) != '\0') {
        const char *url = list;
        size_t bytes = strcspn(url, " \t\n\f\r");
        list += bytes;
        if (url[bytes - 1] != ',')
            for (bool in_parentheses = false; *list != '\0' && (in_parentheses || *list != ','); list++)
                in_parentheses = *list == '(' || (in_parentheses && *list != ')');
        while (url[bytes - 1] == ',')
            bytes--;
        finds_add(finds, "image", false, url, bytes);
    }
}

static void add_refresh(struct finds *finds, const GumboElement *element)
{
    const char *equiv = value_of(element, "http-equiv"), *content = value_of(element, "content");
    size_t bytes;

    if (equiv == NULL || content == NULL || strcasecmp(equiv, "refresh") != 0)
        return;
    content += strspn(content, " \t\n\f\r");
    bytes = strspn(content, "0123456789.");
    if (bytes == 0 || strspn(content + bytes, " \t\n\f\r;,") == 0)
        return;
    content += bytes + strspn(content + bytes, " \t\n\f\r");
    content += *content == ';' || *content == ',';
    content += strspn(content, " \t\n\f\r");
    if (*content == '\0')
        return;
    if (strncasecmp(content, "url", 3) == 0 && content[3 + strspn(content + 3, " \t\n\f\r")] == '=')
        content = strchr(content, '=') + 1;
    content += strspn(content, " \t\n\f\r");
    bytes = *content == '"' || *content == '\'' ? strcspn(content + 1, (char[]){*content, '\0'}) : strlen(content);
    finds_add(finds, "refresh", false, content + (*content == '"' || *content == '\''), bytes);
}

/* Adds the title with white space collapsed, cut at a character boundary within 512 bytes. */
static void add_title(struct finds *finds, const GumboElement *element)
{
    char title[512];
    size_t used = 0;

    for (unsigned i = 0; i < element->children.length; i++) {
        const char *text = ((const GumboNode *)element->children.data[i])->v.text.text;
        while (*(text += strspn(text, " \t\n\f\r")) != '\0') {
            size_t bytes = strcspn(text, " \t\n\f\r"), room = sizeof title - used, gap = used > 0;
            if (gap + 1 > room)
                break;
            size_t count = bytes < room - gap ? bytes : room - gap;
            while (count > 0 && count < bytes && (text[count] & 0xc0) == 0x80)
                count--;
            if (count == 0)
                break;
            title[used] = ' ';
            memcpy(title + used + gap, text, count);
            used += gap + count;
            text += bytes;
            if (count < bytes)
                break;
        }
    }
    finds_add(finds, "title", false, title, used);
}

/* Elements of which only the first counts. */
struct firsts {
    bool has_base, has_title;
};

static void look(struct finds *finds, const GumboElement *element, struct firsts *firsts)
{
    bool is_html = element->tag_namespace == GUMBO_NAMESPACE_HTML;

    if (element->tag == GUMBO_TAG_A && element->tag_namespace != GUMBO_NAMESPACE_MATHML) {
        add(finds, "a", element, "href"); /* includes xlink:href of svg, which gumbo calls href */
        return;
    }
    if (!is_html)
        return;
    switch (element->tag) {
    case GUMBO_TAG_AREA:
        add(finds, "area", element, "href");
        break;
    case GUMBO_TAG_LINK:
        add(finds, "link", element, "href");
        break;
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_FRAME:
        add(finds, "frame", element, "src");
        break;
    case GUMBO_TAG_IMG:
        add(finds, "image", element, "src");
        add_candidates(finds, value_of(element, "srcset"));
        break;
    case GUMBO_TAG_SOURCE:
        add_candidates(finds, value_of(element, "srcset"));
        break;
    case GUMBO_TAG_BASE:
        if (!firsts->has_base && value_of(element, "href") != NULL) {
            add(finds, "base", element, "href");
            firsts->has_base = true;
        }
        break;
    case GUMBO_TAG_TITLE:
        if (!firsts->has_title)
            add_title(finds, element);
        firsts->has_title = true;
        break;
    case GUMBO_TAG_META:
        add_refresh(finds, element);
        break;
    default:
        break;
    }
}

/* Returns the next node in document order. The contents of templates are skipped, except those of
 * shadow roots. */
static const GumboNode *next_node(const GumboNode *node, const GumboNode *root)
{
    bool is_open = node->type == GUMBO_NODE_DOCUMENT || node->type == GUMBO_NODE_ELEMENT ||
                   (node->type == GUMBO_NODE_TEMPLATE && value_of(&node->v.element, "shadowrootmode") != NULL);
    const GumboVector *children =
        node->type == GUMBO_NODE_DOCUMENT ? &node->v.document.children : &node->v.element.children;

    if (is_open && children->length > 0)
        return children->data[0];
    while (node != root) {
        const GumboNode *parent = node->parent;
        children = parent->type == GUMBO_NODE_DOCUMENT ? &parent->v.document.children : &parent->v.element.children;
        if (node->index_within_parent + 1 < children->length)
            return children->data[node->index_within_parent + 1];
        node = parent;
    }
    return NULL;
}

static void judge(struct finds *finds, const char *page, size_t bytes)
{
    GumboOutput *output = gumbo_parse_with_options(&kGumboDefaultOptions, page, bytes);
    struct firsts firsts = {false, false};

    finds_clear(finds);
    for (const GumboNode *node = output->document; node != NULL; node = next_node(node, output->document))
        if (node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE)
            look(finds, &node->v.element, &firsts);
    gumbo_destroy_output(&kGumboDefaultOptions, output);
}

void finds_judge_here(struct finds *finds, const char *page, size_t bytes)
{
    judge(finds, page, bytes);
    finds_sort(finds);
}

bool finds_judge(struct finds *finds, const char *page, size_t bytes)
{
    int status = 0;
    struct finds *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                                0); /* shared with the child at the same address */

    if (shared == MAP_FAILED)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        judge(shared, page, bytes);
        _exit(0);
    }
    bool is_judged = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    finds_clear(finds);
    for (size_t i = 0; is_judged && i < shared->count; i++) {
        size_t length = strlen(shared->lines[i]) + 1;
        memcpy(finds->text + finds->used, shared->lines[i], length);
        finds->lines[finds->count++] = finds->text + finds->used;
        finds->used += length;
    }
    munmap(shared, sizeof *shared);
    finds_sort(finds);
    return is_judged;
}
