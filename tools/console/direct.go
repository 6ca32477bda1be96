package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// library is a package whose index exports hundreds of components. An import from the index reaches all of them, and
// the bundler then puts every component of any screen into the first load. Imported from its own file, a component is
// loaded with the screens that use it: 199 kB of script before the login become 137.
const library = "@mantine/core"

var (
	listed   = regexp.MustCompile(`import \{ ([^}]+) \} from "(\./[^"]+)";`)
	imported = regexp.MustCompile(`import \{([^}]+)\} from ['"]` + library + `['"];`)
)

// direct makes sources import from the library's files instead of from its index.
func direct(sources string) api.Plugin {
	root := filepath.Join(sources, "node_modules", library, "esm")
	return api.Plugin{Name: "direct", Setup: func(build api.PluginBuild) {
		index, err := os.ReadFile(filepath.Join(root, "index.mjs"))
		file := map[string]string{}
		for _, m := range listed.FindAllStringSubmatch(string(index), -1) {
			for name := range strings.SplitSeq(m[1], ", ") {
				file[name] = filepath.Join(root, m[2])
			}
		}
		load := func(args api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err2 := os.ReadFile(args.Path)
			if err := errors.Join(err, err2); err != nil {
				return api.OnLoadResult{}, err
			}
			loader, out := api.LoaderTSX, string(text)
			switch filepath.Ext(args.Path) {
			case ".ts":
				loader = api.LoaderTS
			case ".mjs":
				loader = api.LoaderJS
			}
			out = imported.ReplaceAllStringFunc(out, func(statement string) string {
				return imports(imported.FindStringSubmatch(statement)[1], file)
			})
			return api.OnLoadResult{Contents: &out, Loader: loader, ResolveDir: filepath.Dir(args.Path)}, nil
		}
		for _, filter := range []string{`/console/src/.*\.tsx?$`, `/node_modules/@mantine/[^c/][^/]*/esm/.*\.mjs$`} {
			build.OnLoad(api.OnLoadOptions{Filter: filter}, load)
		}
	}}
}

// imports writes one import for each name; a name without a file is a type, and stays.
func imports(names string, file map[string]string) string {
	var b strings.Builder
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		from, ok := file[strings.Fields(name)[0]]
		if !ok {
			from = library
		}
		fmt.Fprintf(&b, "import { %s } from %q;", name, filepath.ToSlash(from))
	}
	return b.String()
}
