// Package web owns what a browser gets from the service itself: the demonstration page, the page of the development
// outbox, the interface viewer, and the client modules that integrators copy.
//
// The one idea: everything is a plain file under static, embedded as it is. There is no build step, no framework and
// no address outside the service, and no page holds an inline script or style, so that the strictest content security
// policy applies. Addresses in the pages are relative, so that they work below any base path.
//
// The folder flags holds the flag of each country, drawn and scaled, under its ISO 3166-1 code; they are those of
// country-flag-icons, whose licence lies beside them.
//
// Where each file is served: index.html at "/", outbox.html at "/dev/outbox/page", docs.html at "/docs", every other
// file at "/static/<name>". The first two belong to development mode only; the viewer belongs to every mode.
//
// Start reading at static/castellan-client.js, which drives a challenge through its three doors (D-SOCK-07, D-2FA-19),
// and static/castellan-device.js, which is a device (D-AUTH-06), then static/app.js. Package webtest beside this one
// walks the pages in a real browser.
package web

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed static flags
var embedded embed.FS

// contentTypes is a table of our own because package mime asks the machine, and machines differ.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

// FS holds the files by their bare names.
func FS() fs.FS {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		panic("web: the embedded folder is gone: " + err.Error())
	}
	return static
}

// Page gives one file by its bare name, such as "index.html" or "app.js". ok is false for every other name, paths
// included, so that a name from a request can be passed as it came. The caller must not change body.
func Page(name string) (body []byte, contentType string, ok bool) {
	contentType, known := contentTypes[path.Ext(name)]
	if !known || strings.ContainsAny(name, `/\`) {
		return nil, "", false
	}
	body, err := embedded.ReadFile("static/" + name)
	if err != nil {
		return nil, "", false
	}
	return body, contentType, true
}

// Flag gives the flag of a country by its code, in capital letters, and a kind of file: ".svg", or ".png" of 240 by 160
// points. ok is false for everything else. The caller must not change body.
func Flag(code, kind string) (body []byte, contentType string, ok bool) {
	contentType, known := flagTypes[kind]
	if !known || len(code) != 2 {
		return nil, "", false
	}
	body, err := embedded.ReadFile("flags/" + code + kind)
	if err != nil {
		return nil, "", false
	}
	return body, contentType, true
}

var flagTypes = map[string]string{".svg": "image/svg+xml", ".png": "image/png"}
