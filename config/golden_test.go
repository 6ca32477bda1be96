package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGoldenReference keeps the reference of settings as it follows from the table of keys.
func TestGoldenReference(t *testing.T) {
	const file = "../docs/operations/settings.md"
	var b strings.Builder
	b.WriteString("# Settings\n\nGenerated from config/settings.tsv and the defaults by `make golden`. A key may " +
		"be in the file of `--config`\nor in its variable, which counts more. `castellan config` prints the values in use.\n")
	section, escape := "-", strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, e := range table {
		if e.section != section {
			section = e.section
			title := section
			if title == "" {
				title = "top level"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | meaning |\n|---|---|---|\n", title)
		}
		value, _ := Default().shown(e)
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.key, strings.ReplaceAll(value, "|", `\|`),
			escape.Replace(e.doc+e.bounds()))
	}
	if *update {
		storetest.Must(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	have := storetest.Value(os.ReadFile(file))(t)
	storetest.Equal(t, string(have), b.String(), file, "is out of date: run make golden")
}
