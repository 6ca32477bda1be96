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
	tables, err := fs.Glob(phrases, "*/phrases.tsv")
	for _, name := range tables {
		if name == "rest/phrases.tsv" { // the kit adds its own
			continue
		}
		var table []byte
		if table, err = phrases.ReadFile(name); err == nil {
			err = rest.AddPhrases(string(table))
		}
		if err != nil {
			panic(name + ": " + err.Error())
		}
	}
}
