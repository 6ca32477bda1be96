package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// Sources returns one hash over all inputs of the output: each file of the folder except node_modules, with its name.
// The test of package web/console computes the same hash without Node, so a missing build is detected.
func Sources(folder fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "node_modules":
			return fs.SkipDir
		case entry.IsDir(), strings.HasPrefix(entry.Name(), "."), name == "src/api.d.ts": // types are no output
			return nil
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %s\n", hash(text), name)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
