package system

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/fault"
	"castellan/http/edge"
	"castellan/web/console"
)

// consolePolicy is the content security policy of the console. It allows nothing inline but
// styles with the nonce of the page, and nothing from other origins. HTML and addresses of
// scripts must pass its one policy of Trusted Types. In browsers in which 'self' covers only
// HTTP, the console polls its challenges.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; " +
	"img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types default"

// consolePage is the one page of the console. Every address below /console is this
// page; the script finds the screen.
const consolePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="castellan-nonce" nonce="%[1]s">
<meta name="castellan-tokens" content="%[2]s/console/files/%[3]s">
<meta name="castellan-version" content="%[6]s">
<meta name="castellan-mode" content="%[7]s">
<title>Castellan</title>
<link rel="icon" href="%[2]s/static/icon.svg">
<link rel="stylesheet" href="%[2]s/console/files/%[4]s">
<script type="module" src="%[2]s/console/files/%[5]s"></script>
</head>
<body><div id="console"></div></body>
</html>
`

// mountConsole serves the operators' console, if the program contains it. Its files have their
// hash in their name and never change.
func mountConsole(s *edge.Server, o Options) {
	built, ok := console.Built()
	if !ok {
		return
	}
	mode := "production"
	if o.Dev != nil {
		mode = "development"
	}
	page := func(c *fiber.Ctx) error {
		nonce := rand.Text()
		c.Set(fiber.HeaderContentSecurityPolicy, fmt.Sprintf(consolePolicy, nonce))
		c.Set(fiber.HeaderCacheControl, "no-store")
		c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
		return c.SendString(fmt.Sprintf(consolePage, nonce, o.BasePath, built.Entry["tokens"], built.Entry["style"],
			built.Entry["main"], html.EscapeString(o.Version), mode))
	}
	s.Raw(fiber.MethodGet, "/console", page)
	s.Raw(fiber.MethodGet, "/console/", page)
	s.Raw(fiber.MethodGet, "/console/files/:file", consoleFile)
	for deep := "/console/:a"; strings.Count(deep, "/") < 6; deep += "/:" + string(rune('a'+strings.Count(deep, "/"))) {
		s.Raw(fiber.MethodGet, deep, page)
	}
}

var consoleTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".woff2": "font/woff2"}

// consoleFile sends a file as it is embedded, in gzip, or uncompressed to a client that does not take gzip.
func consoleFile(c *fiber.Ctx) error {
	name := c.Params("file")
	kind, known := consoleTypes[path.Ext(name)]
	body, ok := console.File(name)
	if !known || !ok {
		return fault.New(fault.NotFound, "no such file")
	}
	c.Vary(fiber.HeaderAcceptEncoding)
	if takesGzip(c.Get(fiber.HeaderAcceptEncoding)) {
		c.Set(fiber.HeaderContentEncoding, "gzip")
	} else {
		var err error
		if body, err = plain(body); err != nil {
			return err
		}
	}
	c.Set(fiber.HeaderContentType, kind)
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	return c.Send(body)
}

func plain(zipped []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
