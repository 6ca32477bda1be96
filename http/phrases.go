package httpapi

import (
	"embed"
	"io/fs"

	"castellan/http/rest"
)

// phrases are the texts of every section in Turkish and Arabic. A section that
// says something of a field adds phrases.tsv to its folder, and nothing else.
//
//go:embed */phrases.tsv
var phrases embed.FS

func init() {
	tables, _ := fs.Glob(phrases, "*/phrases.tsv") // the pattern is right
	for _, name := range tables {
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
