/* SPDX-License-Identifier: MIT */
/* inflate.c - inflates a gzipped sitemap, one member after the other (RFC 1952 2.2). */
#include "http/sitemap/sitemap_reader.h"

#define WITH_GZIP_HEAD (15 + 16) /* for inflateInit2: the largest window, with a gzip header */

static bool begin_member(struct wr_sitemap *sitemap)
{
    bool is_first = sitemap->stream.state == NULL;
    int error = is_first ? inflateInit2(&sitemap->stream, WITH_GZIP_HEAD) : inflateReset(&sitemap->stream);
    if (error != Z_OK)
        wr_sitemap_stop(sitemap, WR_SITEMAP_NO_MEMORY);
    sitemap->is_member = error == Z_OK;
    return sitemap->is_member;
}

/* Inflates at most one piece. Returns false if this input yields no more. */
static bool inflate_piece(struct wr_sitemap *sitemap)
{
    char piece[WR_SITEMAP_PIECE];
    z_stream *stream = &sitemap->stream;
    stream->next_out = (Bytef *)piece;
    stream->avail_out = sizeof piece;
    int error = inflate(stream, Z_NO_FLUSH);
    wr_sitemap_read_plain(sitemap, (struct wr_span){piece, sizeof piece - stream->avail_out});
    if (error == Z_STREAM_END) {
        sitemap->is_member = false;
        return stream->avail_in > 0;
    }
    if (error != Z_OK && error != Z_BUF_ERROR)
        wr_sitemap_stop(sitemap, error == Z_MEM_ERROR ? WR_SITEMAP_NO_MEMORY : WR_SITEMAP_BROKEN);
    return error == Z_OK && (stream->avail_in > 0 || stream->avail_out == 0);
}

/* Stops at `until`, unless all input is read: what zlib still holds then is at most some KB. */
size_t wr_sitemap_inflate(struct wr_sitemap *sitemap, struct wr_span data, uint64_t until)
{
    z_stream *stream = &sitemap->stream;
    bool has_more = true;
    stream->next_in = (Bytef *)(uintptr_t)data.data; /* zlib does not write to it */
    stream->avail_in = (uInt)data.bytes;
    while (has_more && sitemap->end == WR_SITEMAP_UNFINISHED && (stream->avail_in == 0 || sitemap->facts.bytes < until))
        has_more = (sitemap->is_member || begin_member(sitemap)) && inflate_piece(sitemap);
    return stream->avail_in;
}
