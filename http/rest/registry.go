package rest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"castellan/domain/kit/fault"
)

// entry is the definition of an error code: its status, and its title in the languages of D-GEN-16.
type entry struct {
	status     int
	en, tr, ar string
	retry      bool // Retry-After always accompanies it
}

func (e entry) title(language string) string {
	switch language {
	case "tr":
		return e.tr
	case "ar":
		return e.ar
	}
	return e.en
}

//go:embed codes.tsv
var codeTable string

// registry is the one table from code to status (D-GEN-09), codes.tsv.
var registry = func() map[fault.Code]entry {
	all := map[fault.Code]entry{}
	_, rows, _ := strings.Cut(codeTable, "\n")
	for row := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		status, err := strconv.Atoi(cells[1])
		if err != nil {
			panic(fmt.Sprintf("rest: codes.tsv: %q: %v", row, err))
		}
		all[fault.Code(cells[0])] = entry{status: status, retry: cells[2] == "always", en: cells[3], tr: cells[4],
			ar: cells[5]}
	}
	return all
}()

// StatusOf is the HTTP status of a code; 500 for a code outside the registry.
func StatusOf(code fault.Code) int {
	if e, ok := registry[code]; ok {
		return e.status
	}
	return registry[fault.Internal].status
}

// typeOf is the URI of a code in problem details.
func typeOf(code fault.Code) string {
	return "urn:castellan:problem:" + strings.ReplaceAll(strings.ToLower(string(code)), "_", "-")
}
