// Package console contains the operators' console as built from the folder console at the root, so building the service
// needs no Node. Its one idea: the output is committed with a manifest of its inputs, and a test without Node compares
// them. The tag noconsole leaves it all out.
//
// Start at Built; make console builds it again (tools/console).
package console

// Manifest lists the inputs and outputs of the build. Hashes are hexadecimal SHA-256.
type Manifest struct {
	Sources string            `json:"sources"` // over names and bytes of all sources
	ESBuild string            `json:"esbuild"` // version
	Entry   map[string]string `json:"entry"`   // main, style and tokens → file
	Files   map[string]string `json:"files"`   // file → hash of its plain bytes
	Texts   map[string]string `json:"texts"`   // language → file; a browser loads one
	First   []string          `json:"first"`   // the scripts that a browser loads before the login
}
