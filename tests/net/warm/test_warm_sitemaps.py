#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir warm and the sitemaps that it finds, valid and hostile, against a real nginx. The first
argument is the program."""
import gzip
import string

from cached_site import Site, cases, free_port, index, urlset

PRINTABLE = set(string.printable) - set('\x0b\x0c\r')
ALL_HIT = 'location ^~ /p/ { add_header X-Cache HIT; return 200 page; }'


def warm_of_100000_pages_starts_at_once_and_ends_at_max_pages():
    """U11: two sitemaps of 50 000 pages; the second is not requested."""
    with Site(server=ALL_HIT) as site:
        for part in range(2):
            site.list([f'/p/{part}/{n}' for n in range(50000)], name=f'map{part}.xml')
        site.write('sitemap.xml', index(f'{site.url}/map{part}.xml' for part in range(2)))
        lines, report, run = site.warm('--max-pages', '500', site.url)
        assert run.returncode == 0 and len(lines) == 500 and report['max_pages_reached'], report
        assert report['entries'] <= 510, 'the sitemap was read no further'
        asked = site.asked()
        assert len([path for path in asked if path.startswith('/p/')]) == 499 and asked['/'][0] == 'GET', len(asked)
        assert '/map1.xml' not in asked and all(asked[f'/p/0/{n}'] == ['GET'] for n in range(499))
        log = site.log()
        began = log[0][0]
        first = min(at for at, _, path, *_ in log if path.startswith('/p/'))
        assert first - began < 5 and report['first_page_s'] < 5, (first - began, report['first_page_s'])
        assert '--max-pages is 500' in run.stdout, run.stdout


def front_page_does_not_wait_for_sitemaps():
    with Site(server=ALL_HIT) as site:
        site.warm('--interval', '20ms', site.url)
        order = [path for _, _, path, *_ in site.log()]
        assert order[:3] == ['/robots.txt', '/', '/sitemap.xml'], order


def warm_starts_pages_while_sitemaps_are_read():
    """U11: fetching starts after the first hundred entries."""
    with Site(server=ALL_HIT + 'location = /map-slow.xml { limit_rate 30k; }') as site:
        site.list([f'/p/{n}' for n in range(3000)], name='map-slow.xml')
        _, report, run = site.warm(f'{site.url}/map-slow.xml')
        assert run.returncode == 0 and report['answered'] == 3000, report
        order = [path for _, _, path, *_ in site.log()]
        assert order.index('/map-slow.xml') > 50, 'nginx logs it when it has sent it all'
        assert report['first_page_s'] < report['seconds'] - 1, report


def sitemap_format_is_detected_by_content():
    with Site(server=ALL_HIT) as site:
        forms = {
            'sitemap.xml': urlset([f'{site.url}/p/1?a=1&b=2']),
            'map.gz': gzip.compress(urlset([f'{site.url}/p/2']).encode()),
            'map.txt': f'{site.url}/p/3\n{site.url}/p/4\n',
            'feed.rss': f'<rss><channel><item><link>{site.url}/p/5</link></item></channel></rss>',
            'feed.atom': f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="{site.url}/p/6"/></entry></feed>',
        }
        for name, text in forms.items():
            site.write(name, text)
        lines, report, run = site.warm(*(f'{site.url}/{name}' for name in forms))
        assert run.returncode == 0 and report['sitemaps_read'] == 5, report
        assert set(lines) == {f'{site.url}/p/{n}' for n in ('1?a=1&b=2', 2, 3, 4, 5, 6)}, lines


def sitemaps_are_found_by_robots_or_at_the_usual_paths():
    with Site(server=ALL_HIT) as site:
        site.list(['/p/1'], name='map-odd.xml')
        site.list(['/p/2'], name='sitemap_index.xml')
        lines, report, _ = site.warm()
        assert set(lines) == {f'{site.url}/', f'{site.url}/p/2'}, lines
        assert list(site.asked())[-2:] != ['/sitemap-index.xml'] and report['sitemaps_failed'] == 0, report
        site.write('robots.txt', 'Sitemap: /map-odd.xml\n')
        assert f'{site.url}/p/1' in site.warm()[0]
        assert f'{site.url}/p/2' in site.warm('--sitemap', f'{site.url}/sitemap_index.xml')[0]


def missing_sitemap_is_reported():
    with Site() as site:
        lines, report, run = site.warm()
        assert run.returncode == 1 and list(lines) == [f'{site.url}/'] and report['sitemaps_failed'] == 0, report
        assert f'no sitemap of {site.url}/ was found; --sitemap URL names one\n' in run.stderr, run.stderr
        assert '/sitemap.xml' in site.asked() and '/wp-sitemap.xml' in site.asked()


def sitemap_with_an_error_status_lists_nothing():
    lists = "<urlset><url><loc>/p/1</loc></url></urlset>"
    server = f"location = /sitemap.xml {{ return 404 '{lists}'; }} location = /map-bad.xml {{ return 500 '{lists}'; }}"
    with Site(server=ALL_HIT + server) as site:
        lines, report, run = site.warm('--attempts', '1', site.url)
        assert run.returncode == 1 and list(lines) == [f'{site.url}/'] and report['sitemaps_read'] == 0, report
        site.write('robots.txt', 'Sitemap: /map-bad.xml\n')
        lines, report, run = site.warm('--attempts', '1', site.url)
        assert list(lines) == [f'{site.url}/'] and report['sitemaps_failed'] == 1, (lines, report)


def sitemaps_of_a_dead_site_are_not_searched():
    with Site() as site:
        lines, report, run = site.warm(f'http://127.0.0.1:{free_port()}', '--attempts', '1')
        assert run.returncode == 1 and report['requests'] == 0 and report['broken'] == 1, report
        assert [line['failure'] for line in lines.values()] == ['connect'], lines


def sitemap_index_that_names_itself_ends():
    """D9: also indexes that lead to each other, and nested indexes."""
    with Site(server=ALL_HIT) as site:
        maps = [f'{site.url}/map{n}.xml' for n in range(8)]
        site.write('sitemap.xml', index([f'{site.url}/sitemap.xml', f'{site.url}/sitemap.xml#again', maps[0]]))
        for n in range(7):
            site.write(f'map{n}.xml', index([maps[n + 1], f'{site.url}/sitemap.xml', maps[0]]))
        _, report, run = site.warm()
        asked = site.asked()
        assert run.returncode == 0, run
        assert asked['/sitemap.xml'] == ['GET'] and asked['/map0.xml'] == ['GET'], asked
        assert '/map2.xml' in asked and '/map3.xml' not in asked and report['sitemaps_left_out'] == 1, (asked, report)


def sitemap_entries_of_other_hosts_and_schemes_are_ignored():
    """B12, D9: other hosts, ports, schemes and private addresses."""
    with Site(server=ALL_HIT) as site, Site(server=ALL_HIT) as other:
        outside = [f'{other.url}/p/1', 'file:///etc/passwd', 'http://169.254.169.254/latest', 'javascript:alert(1)',
                   f'http://me:pw@127.0.0.1:{site.port}/p/9', 'http://[', f'http://127.0.0.1:{free_port()}/']
        site.write('map.xml', urlset([f'{site.url}/p/1', *outside]))
        site.write('sitemap.xml', index([f'{site.url}/map.xml', f'{other.url}/map.xml', 'file:///etc/passwd']))
        site.write('robots.txt', f'Sitemap: file:///etc/passwd\nSitemap: {site.url}/sitemap.xml\n')
        lines, report, run = site.warm()
        assert run.returncode == 0 and set(lines) == {f'{site.url}/', f'{site.url}/p/1'}, (run, lines)
        assert report['entries_of_others'] == 3 and report['entries_broken'] == 4, report
        assert report['sitemaps_left_out'] == 3 and other.log() == [], report


def hostile_sitemaps_are_bounded_and_shown_escaped():
    """D9, J11: entities, compression bombs, depth, endless names, terminal control characters."""
    with Site(server=ALL_HIT) as site:
        bad = {
            'map-entity.xml': f'<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>{site.url}/p/&x;'
                              '</loc></url></urlset>',
            'map-laughs.xml': '<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><urlset>&b;</urlset>',
            'map-bomb.gz': gzip.compress(b'<urlset>' + b' ' * (60 << 20)),
            'map-deep.xml': '<urlset>' + '<a>' * 5000,
            'map-name.xml': '<urlset><' + 'a' * 100000,
            'map-html.xml': '<!DOCTYPE html><html><title>\x1b[31m</title></html>',
            'map-text.txt': '\x1b]0;title\x07 no sitemap',
        }
        for name, text in bad.items():
            site.write(name, text)
        odd = [f'{site.url}/p/\x1b[2J', f'{site.url}/p/\u202egnp', f'{site.url}/p/"><script>alert(1)</script>']
        site.write('map-odd.txt', '\n'.join(odd) + '\n' + f'{site.url}/p/' + 'x' * 9000 + '\n')
        names = [*bad, 'map-odd.txt']
        lines, report, run = site.warm(*(f'{site.url}/{name}' for name in names), '--min-hit-ratio', '100')
        assert run.returncode == 1 and report['sitemaps_failed'] == len(bad), report
        assert len(report['sitemap_failures']) == len(bad) and len(lines) == 3, (report, lines)
        assert report['hit_ratio_after'] == 1 and report['entries_broken'] >= 1, report
        assert not set(run.stdout + run.stderr) - PRINTABLE - set('…'), run.stdout
        assert '<script>' not in run.stdout and 'root:' not in run.stdout


def truncated_sitemap_keeps_the_pages_it_listed():
    with Site(server=ALL_HIT) as site:
        site.write('sitemap.xml', urlset([f'{site.url}/p/1', f'{site.url}/p/2'])[:-30])
        lines, report, run = site.warm()
        assert run.returncode == 1 and f'{site.url}/p/1' in lines, lines
        assert report['sitemap_failures'][0]['why'].startswith('it is truncated'), report


if __name__ == '__main__':
    cases.main()
