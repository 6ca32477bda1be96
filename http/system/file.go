package system

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

// A file is a document, a page or a picture that does not change while the process runs. It
// holds the bytes, a compressed form if that is smaller, and the tag of each. It is made at
// its first request.
type file struct {
	kind       string // media type
	plain      []byte // nil of a long file, which is only kept compressed
	compressed []byte // nil where it would not be smaller
	length     int    // of the bytes
	tag        string
}

// maxPlain is the largest size in bytes of a file that is kept in both forms.
const maxPlain = 128 << 10

func newFile(body []byte, kind string) *file {
	sum := sha256.Sum256(body)
	f := &file{kind: kind, plain: body, length: len(body), tag: hex.EncodeToString(sum[:16])}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a known one
	w.Write(body)                                         // a buffer takes everything
	w.Close()
	if b.Len() < len(body) {
		f.compressed = bytes.Clone(b.Bytes())
		if len(body) > maxPlain {
			f.plain = nil
		}
	}
	return f
}

// send answers with the file, or with 304 to a client that has it. Without a Cache-Control of
// the caller, the client revalidates it each time.
func (f *file) send(c *fiber.Ctx, cacheControl string) error {
	body, tag := f.plain, `"`+f.tag+`"`
	if f.compressed != nil {
		c.Vary(fiber.HeaderAcceptEncoding)
		if takesGzip(c.Get(fiber.HeaderAcceptEncoding)) {
			body, tag = f.compressed, `"`+f.tag+`-gzip"`
			c.Set(fiber.HeaderContentEncoding, "gzip")
		}
	}
	c.Set(fiber.HeaderContentType, f.kind)
	c.Set(fiber.HeaderCacheControl, cacheControl)
	c.Set(fiber.HeaderETag, tag)
	if rest.NamesTag(c.Get(fiber.HeaderIfNoneMatch), tag) {
		c.Response().Header.Del(fiber.HeaderContentEncoding)
		c.Status(fiber.StatusNotModified)
		return nil
	}
	if body == nil {
		unpacked, err := gzip.NewReader(bytes.NewReader(f.compressed))
		if err != nil {
			return fmt.Errorf("unpack a file: %w", err)
		}
		return c.SendStream(unpacked, f.length)
	}
	return c.Send(body)
}

// takesGzip reads Accept-Encoding (RFC 9110, section 12.5.3) for gzip under both of its names. A
// client that sends none gets the file as it is.
func takesGzip(accept string) bool {
	taken := false
	for part := range strings.SplitSeq(accept, ",") {
		coding, params, _ := strings.Cut(part, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		weight := strings.ReplaceAll(strings.ToLower(params), " ", "")
		refused := strings.HasPrefix(weight, "q=") && strings.Trim(weight[2:], "0.") == ""
		switch {
		case coding == "gzip", coding == "x-gzip":
			return !refused
		case coding == "*":
			taken = !refused
		}
	}
	return taken
}

// files stores each file after its first request. It is safe for concurrent use.
type files struct{ made sync.Map } // name → *file

// get returns the file of a name; nil if read has none.
func (s *files) get(name string, read func() (body []byte, kind string, ok bool)) *file {
	if f, ok := s.made.Load(name); ok {
		return f.(*file)
	}
	body, kind, ok := read()
	if !ok {
		return nil
	}
	f, _ := s.made.LoadOrStore(strings.Clone(name), newFile(body, kind)) // the name aliases a request
	return f.(*file)
}
