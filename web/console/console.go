//go:build !noconsole

package console

import (
	"embed"
	"encoding/json"
)

//go:embed MANIFEST.json NOTICES dist
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

// Built gives the manifest; ok is false in a program that was built without the console.
func Built() (m Manifest, ok bool) { return manifest, true }

// Notices are the licences of what the console is built with.
func Notices() string {
	text, err := embedded.ReadFile("NOTICES")
	if err != nil {
		panic("console: the embedded notices: " + err.Error())
	}
	return string(text)
}

// File gives a file of the console as it was compressed: br or gz. ok is false for
// every name that the manifest does not have. The caller must not change body.
func File(name, coding string) (body []byte, ok bool) {
	if _, ok := manifest.Files[name]; !ok {
		return nil, false
	}
	body, err := embedded.ReadFile("dist/" + name + "." + coding)
	return body, err == nil
}
