package httpapi

import (
	"embed"
	"io/fs"
	"iter"

	"castellan/http/rest"
)

// phrases are the texts of every section in Turkish and Arabic. A section with messages about
// fields adds phrases.tsv to its folder.
//
//go:embed */phrases.tsv */*/phrases.tsv
var phrases embed.FS

func init() {
	for name, table := range sectionFiles(phrases, "phrases.tsv") {
		if err := rest.AddPhrases(string(table)); err != nil {
			panic(name + ": " + err.Error())
		}
	}
}

// sectionFiles returns the files of a name in the folders of the sections and of their kit, in order. Package rest adds
// its own.
func sectionFiles(files embed.FS, name string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, pattern := range []string{"*/" + name, "*/*/" + name} {
			paths, _ := fs.Glob(files, pattern) // the patterns are right
			for _, path := range paths {
				text, _ := files.ReadFile(path) // it is embedded
				if path != "rest/"+name && !yield(path, text) {
					return
				}
			}
		}
	}
}
