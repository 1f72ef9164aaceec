# SPDX-License-Identifier: MIT
"""Parses an HTML page with Python's own parser and checks that it is complete and refers to nothing
outside."""
import html.parser

VOID = {'meta', 'br', 'rect', 'path', 'link', 'img', 'input', 'hr'}
TAGS = {'html', 'head', 'meta', 'style', 'title', 'body', 'main', 'h1', 'h2', 'p', 'b', 'div', 'table', 'caption', 'thead',
        'tbody', 'tr', 'th', 'td', 'figure', 'figcaption', 'svg', 'text', 'path', 'rect'}


class Page(html.parser.HTMLParser):
    """A parsed page. `texts`: the visible texts; `tags`: [(name, attributes)]. Refuses a page whose
    tags are not balanced."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts = [], [], []
        self.feed(source)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if self.open and self.open[-1] != 'style' and data.strip():
            self.texts.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)


def harmless(source):
    """Parses the page and checks that it runs no script, fetches nothing, and has accessible
    tables. Returns the page."""
    page = Page(source)
    names = [name for name, _ in page.tags]
    assert set(names) <= TAGS, set(names) - TAGS
    for name, attributes in page.tags:
        assert not any(key.startswith('on') or key in ('src', 'href', 'style', 'srcdoc', 'action') for key in attributes), attributes
        assert name != 'th' or attributes.get('scope') in ('row', 'col'), attributes
    assert names.count('table') == names.count('caption') and names.count('figure') == names.count('figcaption')
    assert source.count('<style') == 1 and 'url(' not in source and '@import' not in source
    metas = [attributes for name, attributes in page.tags if name == 'meta']
    policy = [meta['content'] for meta in metas if meta.get('http-equiv') == 'Content-Security-Policy']
    assert policy and policy[0].startswith("default-src 'none'; ") and 'script' not in policy[0], policy
    assert names.index('style') > names.index('meta') and 'prefers-color-scheme: dark' in source
    assert any(meta.get('name') == 'viewport' for meta in metas)
    return page
