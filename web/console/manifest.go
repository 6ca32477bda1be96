// Package console holds the operators' console as it was built from the folder
// console at the root: whoever builds the service needs no Node. Its one idea: the
// output is committed with a manifest of what it was made of, and a test without
// Node compares. The tag noconsole leaves it all out.
//
// Start at Built; make console builds it anew (tools/console).
package console

// Manifest says what the console was made of. Hashes are hexadecimal SHA-256.
type Manifest struct {
	Sources string            `json:"sources"` // over names and bytes of all sources
	ESBuild string            `json:"esbuild"` // version
	Entry   map[string]string `json:"entry"`   // main, style and tokens → file
	Files   map[string]string `json:"files"`   // file → hash of its plain bytes
	Texts   map[string]string `json:"texts"`   // language → file; a browser loads one
	First   []string          `json:"first"`   // the scripts that a browser loads before somebody can log in
}
