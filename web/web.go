// Package web contains the files that the service itself serves to browsers. They are the demonstration page, the page
// of the development outbox, the interface viewer, the authenticator, the page of the setup link, and the client
// modules that integrators copy.
//
// The one idea: everything is a plain file under static, embedded unchanged. There is no build step, no framework and
// no address outside the service. No page contains an inline script or style, so the strictest content security policy
// applies. Addresses in the pages are relative, so that they work below any base path.
//
// The folder flags contains the flag of each country, drawn and scaled, under its ISO 3166-1 code. The flags come from
// country-flag-icons, whose licence is beside them.
//
// Paths: index.html at "/", outbox.html at "/dev/outbox/page", docs.html at "/docs", authenticator.html at
// "/authenticator", setup.html at "/setup", every other file at "/static/<name>". The first two exist in development
// mode only; the others exist in every mode.
//
// Start reading at static/castellan-client.js, which runs a challenge over its three transports (D-SOCK-07, D-2FA-19),
// and static/castellan-device.js, which is a device (D-AUTH-06), then static/app.js. Package webtest beside this one
// tests the pages in a real browser.
package web

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

// Version is the release of this tree. The client modules are also served at an address that contains it.
const Version = "0.10.0"

//go:embed static flags
var embedded embed.FS

// contentTypes is our own table because package mime depends on the machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",

	".webmanifest": "application/manifest+json",
}

// FS returns the files by their bare names.
func FS() fs.FS {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		panic("web: the embedded folder is gone: " + err.Error())
	}
	return static
}

// Page returns one file by its bare name, such as "index.html" or "app.js". ok is false for every other name, including
// paths, so a name from a request can be passed unchanged. The caller must not change body.
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

// Flag returns the flag of a country by its code, in capital letters, and a kind of file: ".svg", or ".png" of 240 by
// 160 points. ok is false for everything else. The caller must not change body.
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
