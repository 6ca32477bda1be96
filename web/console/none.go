//go:build noconsole

package console

// Built returns the manifest; ok is false in a program that was built without the console.
func Built() (m Manifest, ok bool) { return Manifest{}, false }

// File finds no file here.
func File(name string) (body []byte, ok bool) { return nil, false }

// Notices is empty here.
func Notices() []byte { return nil }
