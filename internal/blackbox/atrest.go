package blackbox

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"castellan/domain/kit/storetest"
)

// AtRest returns all stored data of the site, by its location: the files below the data folder, or the rows of every
// table as the database stores them.
func (s *Site) AtRest() map[string][]byte {
	s.t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(s.Dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(s.Dir, file)
		if err == nil {
			found[name], err = os.ReadFile(file)
		}
		return err
	})
	storetest.Must(s.t, err)
	if s.Kind == "postgres" {
		s.rows(found)
	}
	return found
}

// rows reads every column of every table. A column of bytes is read as bytes, so that text in it would show.
func (s *Site) rows(found map[string][]byte) {
	s.t.Helper()
	db := s.Open()
	defer db.Close()
	names, err := db.Query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
	storetest.Must(s.t, err)
	var tables []string
	for names.Next() {
		var name string
		storetest.Must(s.t, names.Scan(&name))
		tables = append(tables, name)
	}
	for _, table := range tables {
		rows := storetest.Value(db.Query(`SELECT * FROM "` + table + `"`))(s.t)
		columns := storetest.Value(rows.Columns())(s.t)
		var all bytes.Buffer
		for rows.Next() {
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = new(any)
			}
			storetest.Must(s.t, rows.Scan(cells...))
			for _, c := range cells {
				switch v := (*c.(*any)).(type) {
				case []byte:
					all.Write(v)
				default:
					fmt.Fprint(&all, v)
				}
				all.WriteByte('\n')
			}
		}
		storetest.Must(s.t, rows.Err())
		found["table "+table] = all.Bytes()
	}
}

// Find lists the places where a secret appears. A code of six digits must not be part of a longer number, which is
// another value.
func Find(places map[string][]byte, secret string) (hits []string) {
	pattern := regexp.QuoteMeta(secret)
	if len(secret) == 6 && strings.Trim(secret, "0123456789") == "" {
		pattern = `(^|[^0-9.])` + pattern + `($|[^0-9])`
	}
	re := regexp.MustCompile(pattern)
	for place, text := range places {
		if m := re.FindIndex(text); m != nil {
			hits = append(hits, fmt.Sprintf("%s: …%q…", place, text[max(0, m[0]-30):min(len(text), m[1]+10)]))
		}
	}
	return hits
}
