// Command console bundles the sources in console/ into web/console, which is committed and embedded, so building the
// service needs no Node. esbuild is a library here, pinned by go.sum, and the packages by the hashes in
// package-lock.json. So the same sources give the same bytes everywhere.
//
//	npm --prefix console ci --ignore-scripts && go -C tools run ./console ../console ../web/console
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/klauspost/compress/gzip" // half a percent smaller than the standard library's
)

func main() {
	var err error
	switch {
	case len(os.Args) == 4 && os.Args[1] == "dev":
		err = dev(os.Args[2], os.Args[3])
	case len(os.Args) == 3:
		err = run(os.Args[1], os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: console SOURCES OUTPUT, or console dev SOURCES URL")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Manifest lists the inputs and outputs of the build. Its hashes are hexadecimal SHA-256.
type Manifest struct {
	Sources string            `json:"sources"` // hash over the names and bytes of all sources
	ESBuild string            `json:"esbuild"` // version
	Entry   map[string]string `json:"entry"`   // main, style, tokens → file
	Files   map[string]string `json:"files"`   // file without .gz → hash of its plain bytes
	Texts   map[string]string `json:"texts"`   // language → file; a browser loads one
	First   []string          `json:"first"`   // the scripts that a browser loads before the login
}

func run(sources, output string) error {
	result := api.Build(options(sources))
	if len(result.Errors) > 0 {
		text := api.FormatMessages(result.Errors, api.FormatMessagesOptions{})
		return errors.New(strings.Join(text, "\n"))
	}
	entry, texts, first, err := entries(result.Metafile)
	if err != nil {
		return err
	}
	sum, err := Sources(os.DirFS(sources))
	if err != nil {
		return err
	}
	m := Manifest{Sources: sum, ESBuild: version("github.com/evanw/esbuild"), Entry: entry, Texts: texts,
		Files: map[string]string{}, First: first}
	dist := filepath.Join(output, "dist")
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for _, f := range result.OutputFiles {
		name := filepath.Base(f.Path)
		m.Files[name] = hash(f.Contents)
		if err := compressed(filepath.Join(dist, name), f.Contents); err != nil {
			return err
		}
	}
	notices, err := notices(sources, result.Metafile)
	if err != nil {
		return err
	}
	if err := compressed(filepath.Join(output, "NOTICES"), notices); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	report(os.Stdout, dist, m)
	return os.WriteFile(filepath.Join(output, "MANIFEST.json"), append(text, '\n'), 0o644)
}

func options(sources string) api.BuildOptions {
	abs, _ := filepath.Abs(sources) // if it is missing, the build reports that
	return api.BuildOptions{
		EntryPoints: []string{"src/main.tsx", "src/tokens.ts"},
		// One folder without chunk names: they would reveal what a permission protects.
		EntryNames: "[name]-[hash]", ChunkNames: "part-[hash]", AssetNames: "[name]-[hash]",
		AbsWorkingDir:     abs,
		Outdir:            "out", // never written
		Bundle:            true,
		Splitting:         true,
		Format:            api.FormatESModule,
		Target:            api.ES2022,
		JSX:               api.JSXAutomatic,
		MinifySyntax:      true,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		LegalComments:     api.LegalCommentsNone, // the licences are in THIRD_PARTY_NOTICES
		Define:            map[string]string{"process.env.NODE_ENV": `"production"`},
		Metafile:          true,
		Plugins:           []api.Plugin{direct(abs)},
	}
}

// output is the bundler's description of a file that it created.
type output struct {
	EntryPoint string `json:"entryPoint"`
	CSSBundle  string `json:"cssBundle"`
	Imports    []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"imports"`
}

// before are the sources that are loaded before the login, in English.
var before = []string{"src/main.tsx", "src/text/en.ts"}

// entries finds the files that a page names itself, and those that it loads first.
func entries(metafile string) (entry, texts map[string]string, first []string, err error) {
	var meta struct {
		Outputs map[string]output `json:"outputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, nil, nil, err
	}
	entry, texts = map[string]string{}, map[string]string{}
	loaded := map[string]bool{}
	var load func(name string)
	load = func(name string) {
		if loaded[name] || filepath.Ext(name) != ".js" {
			return
		}
		loaded[name] = true
		first = append(first, filepath.Base(name))
		for _, i := range meta.Outputs[name].Imports {
			if i.Kind == "import-statement" {
				load(i.Path)
			}
		}
	}
	for name, out := range meta.Outputs {
		switch out.EntryPoint {
		case "src/main.tsx":
			entry["main"], entry["style"] = filepath.Base(name), filepath.Base(out.CSSBundle)
		case "src/tokens.ts":
			entry["tokens"] = filepath.Base(name)
		}
		if file, ok := strings.CutPrefix(out.EntryPoint, "src/text/"); ok {
			texts[strings.TrimSuffix(file, ".ts")] = filepath.Base(name)
		}
		if slices.Contains(before, out.EntryPoint) {
			load(name)
		}
	}
	if len(entry) != 3 {
		return nil, nil, nil, fmt.Errorf("the bundle has the entries %v, want main, style and tokens", entry)
	}
	slices.Sort(first)
	return entry, texts, first, nil
}

// compressed writes name.gz; the plain file is not needed. Brotli would be an eighth shorter, but browsers take it only
// from secure origins, so each file would be in the program twice.
func compressed(name string, content []byte) error {
	var gz bytes.Buffer
	w, _ := gzip.NewWriterLevel(&gz, gzip.BestCompression) // the level is valid
	w.Write(content)                                       // a buffer takes everything
	w.Close()
	return os.WriteFile(name+".gz", gz.Bytes(), 0o644)
}

// report prints the size of the first load and the total.
func report(w *os.File, dist string, m Manifest) {
	var names []string
	for name := range m.Files {
		names = append(names, name)
	}
	sort.Strings(names)
	all, first := int64(0), int64(0) // the maximum that one browser may ever load
	for _, name := range names {
		gz, err := os.Stat(filepath.Join(dist, name+".gz"))
		if err != nil {
			continue
		}
		if strings.HasSuffix(name, ".js") && name != m.Texts["tr"] && name != m.Texts["ar"] {
			all += gz.Size()
		}
		if slices.Contains(m.First, name) {
			first += gz.Size()
		}
	}
	fmt.Fprintf(w, "first load %d bytes of script, gzipped; all scripts %d, in %d files\n", first, all, len(names))
}

func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return ""
}
