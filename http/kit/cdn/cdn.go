// Package cdn serves the public files at /cdn/<path> (REQ-ANN-05, D-ADM-06), from the folder or from the bucket,
// which stays private. So the headers are always the same, and an address does not reveal the storage.
//
// The one idea: these files are data and never a page. Browsers must not guess their type (nosniff) or run them
// (CSP sandbox). Only re-encoded pictures are displayed; all other files are downloaded.
//
// Start reading at Mount.
package cdn

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/picture"
	"castellan/http/edge"
)

const (
	// forever is for a key that is never reused, asked for a key that an upload can replace.
	forever = "public, max-age=31536000, immutable"
	asked   = "public, no-cache"
	// transferTime bounds one answer; its connection ends by then anyway.
	transferTime = 5 * time.Minute
)

// Mount adds the route to a server. There is no list of files.
func Mount(s *edge.Server, files blob.Store) {
	s.Raw(fiber.MethodGet, "/cdn/*", func(c *fiber.Ctx) error { return serve(c, files) })
}

func serve(c *fiber.Ctx, files blob.Store) error {
	// The bytes go out after this returns.
	ctx, cancel := context.WithTimeout(context.Background(), transferTime)
	f, err := files.Get(ctx, blob.PublicKey(c.Params("*")))
	if err != nil {
		cancel()
		if errors.Is(err, blob.ErrNotFound) {
			return fault.New(fault.NotFound, "no such file")
		}
		return err
	}
	sent := &sending{f: f, cancel: cancel}
	if err := answer(c, sent); err != nil {
		_ = sent.Close() // nothing was sent of it
		return err
	}
	return nil
}

// answer sends a file, a part of it, or 304.
func answer(c *fiber.Ctx, s *sending) error {
	head := make([]byte, min(s.f.Size, 16))
	if _, err := io.ReadFull(s.f, head); err != nil {
		return blob.Failed("read", err)
	}
	describe(c, s.f.Info, picture.Sniff(head))
	if unchanged(c, s.f.Info) {
		c.Status(fiber.StatusNotModified)
		return s.Close()
	}
	from, size := int64(0), s.f.Size
	if r := c.Get(fiber.HeaderRange); r != "" && current(c, s.f.Info) {
		begin, end, err := fasthttp.ParseByteRange([]byte(r), int(size))
		switch {
		case strings.Contains(r, ","): // several parts: the whole file is valid too (RFC 9110, section 14.2)
		case err != nil:
			c.Set(fiber.HeaderContentRange, "bytes */"+strconv.FormatInt(size, 10))
			c.Status(fiber.StatusRequestedRangeNotSatisfiable)
			return s.Close()
		default:
			c.Set(fiber.HeaderContentRange, "bytes "+strconv.Itoa(begin)+"-"+strconv.Itoa(end)+"/"+
				strconv.FormatInt(size, 10))
			c.Status(fiber.StatusPartialContent)
			from, size = int64(begin), int64(end-begin+1)
		}
	}
	if _, err := s.f.Seek(from, io.SeekStart); err != nil {
		return blob.Failed("read", err)
	}
	s.rest = size
	c.Context().SetBodyStream(s, int(size))
	return nil
}

func describe(c *fiber.Ctx, f blob.Info, format picture.Format) {
	// The edge has set nosniff and Referrer-Policy.
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	c.Set("Cross-Origin-Resource-Policy", "cross-origin") // pages of other origins show the pictures
	c.Set(fiber.HeaderAcceptRanges, "bytes")
	c.Set(fiber.HeaderETag, tag(f))
	c.Set(fiber.HeaderLastModified, f.Modified.UTC().Format(http.TimeFormat))
	c.Set(fiber.HeaderCacheControl, asked)
	if blob.Generated(f.Key) {
		c.Set(fiber.HeaderCacheControl, forever)
	}
	switch format {
	case picture.PNG, picture.JPEG:
		c.Set(fiber.HeaderContentType, string(format))
	default:
		c.Set(fiber.HeaderContentType, fiber.MIMEOctetStream)
		c.Set(fiber.HeaderContentDisposition, "attachment")
	}
}

func tag(f blob.Info) string { return `"` + f.Version + `"` }

// unchanged evaluates If-None-Match and, without it, If-Modified-Since (RFC 9110, section 13.2.2).
func unchanged(c *fiber.Ctx, f blob.Info) bool {
	if header := c.Get(fiber.HeaderIfNoneMatch); header != "" {
		for part := range strings.SplitSeq(header, ",") {
			if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag(f) {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(c.Get(fiber.HeaderIfModifiedSince))
	return err == nil && !f.Modified.Truncate(time.Second).After(since)
}

// current evaluates If-Range (RFC 9110, section 13.1.5): a part of another version is useless.
func current(c *fiber.Ctx, f blob.Info) bool {
	header := c.Get(fiber.HeaderIfRange)
	return header == "" || header == tag(f)
}

// sending is a file on its way; the server closes it.
type sending struct {
	f      blob.File
	rest   int64
	cancel context.CancelFunc
}

func (s *sending) Read(p []byte) (int, error) {
	if s.rest <= 0 {
		return 0, io.EOF
	}
	n, err := s.f.Read(p[:min(int64(len(p)), s.rest)])
	s.rest -= int64(n)
	return n, err
}

func (s *sending) Close() error {
	s.cancel()
	return s.f.Close()
}
