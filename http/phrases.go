package httpapi

import (
	"embed"
	"io/fs"

	"castellan/http/rest"
)

// phrases are the texts of every section in Turkish and Arabic. A section with messages about
// fields adds phrases.tsv to its folder.
//
//go:embed */phrases.tsv */*/phrases.tsv
var phrases embed.FS

func init() {
	for _, name := range phraseFiles(phrases, "phrases.tsv") {
		if name == "rest/phrases.tsv" { // the kit adds its own
			continue
		}
		table, err := phrases.ReadFile(name)
		if err == nil {
			err = rest.AddPhrases(string(table))
		}
		if err != nil {
			panic(name + ": " + err.Error())
		}
	}
}

// phraseFiles lists the files of a name in the folders of the sections and of their kit.
func phraseFiles(files fs.FS, name string) []string {
	shared, _ := fs.Glob(files, "*/"+name) // the patterns are right
	sections, _ := fs.Glob(files, "*/*/"+name)
	return append(shared, sections...)
}
