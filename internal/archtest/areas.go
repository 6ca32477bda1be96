package archtest

import (
	"slices"
	"strings"
)

// areas are the subjects of the service, lowest first. In the layers of areaLayers the folder below the layer is an
// area; a package imports its own area and those before it.
var areas = []string{"kit", "delivery", "guard", "factor", "account", "proof", "session", "permit", "gate", "money",
	"office", "people"}

// areaLayers lists the layers that are divided by areas, with the folders that every area shares.
var areaLayers = map[string][]string{
	"domain":      nil,
	"http":        {"rest", "wire", "edge", "auth", "socket", "system", "cluster", "apitest"},
	"persistence": {"engine", "record", "migrations", "persistencetest"},
}

// composed names the areas of the domain that a section shows besides its own and those before it. A section of http
// is named and placed like the slice whose endpoints it serves, and some of these endpoints show an account whole.
var composed = map[string][]string{
	"http/factor/challenge": {"account", "proof"},
	"http/factor/mfa":       {"proof"},
	"http/account/password": {"session"},
	"http/account/user":     {"proof", "session"},
	"http/proof/device":     {"session"},
}

// areaOf returns the index of a package in areas. It is -1 for a package of no area: the root of a layer, a folder that
// every area shares, and the other layers.
func areaOf(dir string) int {
	layer, rest, _ := strings.Cut(dir, "/")
	if _, divided := areaLayers[layer]; !divided {
		return -1
	}
	area, _, _ := strings.Cut(rest, "/")
	return slices.Index(areas, area)
}

// misplaced returns why a package of a divided layer is in no area, or "".
func misplaced(dir string) string {
	layer, rest, below := strings.Cut(dir, "/")
	shared, divided := areaLayers[layer]
	area, _, _ := strings.Cut(rest, "/")
	if !divided || !below || areaOf(dir) >= 0 || slices.Contains(shared, area) {
		return ""
	}
	return area + " is no area: " + strings.Join(areas, ", ")
}

// againstOrder returns why the package in folder dir may not import the package in folder local, or "".
func againstOrder(dir, local string) string {
	from, to := areaOf(dir), areaOf(local)
	if from < 0 || to <= from || strings.HasPrefix(local, "domain/") && slices.Contains(composed[dir], areas[to]) {
		return ""
	}
	return "the area " + areas[to] + " comes after " + areas[from]
}

// maxFiles is the maximum number of source files in a folder, including tests.
const maxFiles = 30

// crowded names the folders with more files, and the reason.
var crowded = map[string]string{
	"test/office":        "one test binary, whose files are stories",
	"cmd/castellan":      "one file for each command, which a reader looks up by its name",
	"cmd/app":            "the wiring: a file for each area, and for each function that commands share",
	"cluster":            "one subject, the node: its parts share unexported state and are read together",
	"http/edge":          "one subject, the web server: each file is a limit or a filter that every request passes",
	"http/rest":          "one subject, the kit of endpoints, on which every section is written",
	"internal/blackbox":  "one subject, the started program: its parts share unexported state",
	"persistence/engine": "one subject, the committer of both databases; its parts share unexported state",
}
