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
	for _, row := range Rows(codeTable) {
		status, err := strconv.Atoi(row[1])
		if err != nil {
			panic(fmt.Sprintf("rest: codes.tsv: %q: %v", row, err))
		}
		all[fault.Code(row[0])] = entry{status: status, retry: row[2] == "always", en: row[3], tr: row[4], ar: row[5]}
	}
	return all
}()

// Rows returns the rows of a table, whose cells are separated by tabs, without the names of its columns.
func Rows(table string) (rows [][]string) {
	_, table, _ = strings.Cut(table, "\n")
	for row := range strings.Lines(table) {
		rows = append(rows, strings.Split(strings.TrimSuffix(row, "\n"), "\t"))
	}
	return rows
}

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
