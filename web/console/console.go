//go:build !noconsole

package console

import (
	"embed"
	"encoding/json"
)

//go:embed MANIFEST.json NOTICES.gz dist
var embedded embed.FS

var manifest = func() Manifest {
	var m Manifest
	text, err := embedded.ReadFile("MANIFEST.json")
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		panic("console: the embedded manifest: " + err.Error())
	}
	return m
}()

// Built returns the manifest; ok is false in a program that was built without the console.
func Built() (m Manifest, ok bool) { return manifest, true }

// Notices returns the licences of the console's dependencies in gzip.
func Notices() []byte {
	packed, err := embedded.ReadFile("NOTICES.gz")
	if err != nil {
		panic("console: the embedded notices: " + err.Error())
	}
	return packed
}

// File returns a file of the console in gzip. ok is false for every name that is not in the manifest. The caller must
// not change body.
func File(name string) (body []byte, ok bool) {
	if _, ok := manifest.Files[name]; !ok {
		return nil, false
	}
	body, err := embedded.ReadFile("dist/" + name + ".gz")
	return body, err == nil
}
