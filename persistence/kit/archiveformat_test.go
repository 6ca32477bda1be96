package kit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// unpacked are the lines of a file without its MAC.
func unpacked(t *testing.T, content []byte) []string {
	t.Helper()
	z := storetest.Value(gzip.NewReader(bytes.NewReader(content)))(t)
	text := storetest.Value(io.ReadAll(z))(t)
	lines := strings.SplitAfter(string(text), "\n")
	return lines[:len(lines)-2]
}

// packed is a file of lines, with a MAC of a key.
func packed(t *testing.T, key []byte, lines []string) []byte {
	t.Helper()
	text := []byte(strings.Join(lines, ""))
	mac := storetest.Value(json.Marshal(map[string][]byte{"mac": kit.ArchiveMAC(key, text)}))(t)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(append(append(text, mac...), '\n'))
	storetest.Must(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// twoArchives are the first two files of a trail: each has a header, five rows and one checkpoint.
func twoArchives(t *testing.T) (l *trail, files [2][]byte) {
	t.Helper()
	l, _ = aged(t, persistencetest.SQLite(t))
	s := newShelf()
	for i := range 2 {
		a, err := l.archive(s, time.Unix(1_700_000_000, 0).Add(time.Duration(i+1)*time.Hour))
		if err != nil || a.Rows != 5 || a.Counter != int64(i+1) {
			t.Fatalf("%+v, %v", a, err)
		}
		files[i] = s.files["audit-archive/"+a.Name]
	}
	return l, files
}

// replaced changes a text in one line.
func replaced(line int, before, after string) func([]string) []string {
	return func(l []string) []string {
		l[line] = strings.Replace(l[line], before, after, 1)
		return l
	}
}

// A file has a header, its rows and its checkpoints. A change of any of them is refused even under the right key.
func TestReadArchive(t *testing.T) {
	_, files := twoArchives(t)
	lines := unpacked(t, files[1])
	if len(lines) != 7 || !strings.Contains(lines[0], `"format":"castellan audit archive 1","counter":2`) ||
		!strings.Contains(lines[1], `"seq":6`) || !strings.Contains(lines[6], `"Counter":2`) {
		t.Fatalf("lines %v", lines)
	}
	f, err := kit.ReadArchive(auditKey, packed(t, auditKey, lines))
	if err != nil || f.Counter != 2 || len(f.Rows) != 5 || f.Rows[4].Seq != 10 || len(f.Checkpoints) != 1 ||
		f.Mark != 1 || f.End.Counter != 2 || len(f.From) != 1 || f.At == 0 || len(f.Previous) != 32 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, h := range f.Heads {
		if h.Seq != 10 || !bytes.Equal(h.Hash, f.Rows[4].Hash) {
			t.Errorf("head %+v", h)
		}
	}
	for name, c := range map[string]struct {
		change func(l []string) []string
		says   string
	}{
		"format":      {replaced(0, "archive 1", "archive 2"), "the file has another format"},
		"header":      {func(l []string) []string { l[0] = "{\n"; return l }, "the file has another format"},
		"line":        {func(l []string) []string { l[3] = "x\n"; return l }, "a line cannot be read"},
		"lost row":    {func(l []string) []string { return append(l[:2], l[3:]...) }, ", row 7"},
		"first row":   {func(l []string) []string { return append(l[:1], l[2:]...) }, ", row 6"},
		"changed row": {replaced(5, "digest", "forged"), ", row 10"},
		"checkpoint":  {replaced(6, `"At":17`, `"At":18`), "checkpoint 2"},
		"number":      {replaced(6, `"Counter":2`, `"Counter":3`), "checkpoint 2"},
	} {
		_, err := kit.ReadArchive(auditKey, packed(t, auditKey, c.change(unpacked(t, files[1]))))
		if !errors.Is(err, kit.ErrTampered) || !strings.HasSuffix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
	for name, content := range map[string][]byte{"not an archive": []byte("text"),
		"damaged or belongs to another deployment": packed(t, []byte("other"), lines)} {
		if _, err := kit.ReadArchive(auditKey, content); !errors.Is(err, kit.ErrTampered) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file follows the one before it by its number, its digest, the last row of each chain and the last checkpoint.
func TestArchivesJoin(t *testing.T) {
	_, files := twoArchives(t)
	header := func(change func(h map[string]any, from map[string]any)) []byte {
		lines := unpacked(t, files[1])[:1] // without rows, so that the header alone decides
		var h map[string]any
		storetest.Must(t, json.Unmarshal([]byte(lines[0]), &h))
		change(h, h["from"].(map[string]any))
		text := storetest.Value(json.Marshal(h))(t)
		return packed(t, auditKey, []string{string(text) + "\n"})
	}
	other := "AAAA"
	chain := func(from map[string]any) map[string]any {
		for _, h := range from {
			return h.(map[string]any)
		}
		return nil
	}
	for name, c := range map[string]struct {
		change func(h, from map[string]any)
		joins  bool
	}{
		"as it was":      {func(_, _ map[string]any) {}, true},
		"no chain":       {func(h, _ map[string]any) { h["from"] = map[string]any{} }, true},
		"number":         {func(h, _ map[string]any) { h["counter"] = 3 }, false},
		"file before":    {func(h, _ map[string]any) { h["previous"] = other }, false},
		"checkpoint":     {func(h, _ map[string]any) { h["checkpoint"] = 2 }, false},
		"checkpoint MAC": {func(h, _ map[string]any) { h["checkpointMac"] = other }, false},
		"row":            {func(_, from map[string]any) { chain(from)["n"] = 6 }, false},
		"hash of a row":  {func(_, from map[string]any) { chain(from)["h"] = other }, false},
		"unknown chain":  {func(_, from map[string]any) { from["zz"] = map[string]any{"n": 1, "h": other} }, false},
	} {
		a := &kit.Archives{}
		storetest.Must(t, a.Add(auditKey, "one", files[0]))
		err := a.Add(auditKey, "two", header(c.change))
		if (err == nil) != c.joins || err != nil && (!errors.Is(err, kit.ErrTampered) ||
			!strings.HasPrefix(err.Error(), "two: ") || !strings.Contains(err.Error(), "does not follow the one before it")) {
			t.Errorf("%s: %v", name, err)
		}
		storetest.Equal(t, a.Rows, 5, name)
		storetest.Equal(t, a.First, 1, name)
	}
	late := &kit.Archives{} // of a later first file the chains before are not known
	storetest.Must(t, late.Add(auditKey, "two", header(func(_, from map[string]any) {
		from["zz"] = map[string]any{"n": 1, "h": other}
	})))
	storetest.Equal(t, late.First, 2, late)
	storetest.Equal(t, late.Rows, 0, late)
}

// Files of another trail do not vouch for a database, whether it has archives or not.
func TestArchivesOfAnotherTrail(t *testing.T) {
	own, files := twoArchives(t)
	zeroth := unpacked(t, files[0])[:1] // no archive has the number 0
	zeroth[0] = strings.Replace(zeroth[0], `"counter":1`, `"counter":0`, 1)
	zero := &kit.Archives{}
	storetest.Must(t, zero.Add(auditKey, "zero", packed(t, auditKey, zeroth)))
	if v, err := kit.NewAudit(own.DB).VerifySince(t.Context(), auditKey, audit.Anchor{}, zero); !errors.Is(err,
		kit.ErrTampered) {
		t.Errorf("archive 0: %+v, %v", v, err)
	}
	db := persistencetest.SQLite(t)
	none := newTrail(t, db)
	none.adds(3)
	other, _ := twoArchives(t)
	for n := range 2 {
		a := &kit.Archives{}
		storetest.Must(t, a.Add(auditKey, "file", files[n]))
		says := fmt.Sprintf("archive %d differs from the one in the database", n+1)
		for name, l := range map[string]*trail{"without archives": none, "with others": other} {
			v, err := kit.NewAudit(l.DB).VerifySince(t.Context(), auditKey, audit.Anchor{}, a)
			if !errors.Is(err, kit.ErrTampered) || !strings.Contains(err.Error(), says) || v.Rows != 0 {
				t.Errorf("%s: %+v, %v", name, v, err)
			}
		}
		if v, err := kit.NewAudit(own.DB).VerifySince(t.Context(), auditKey, audit.Anchor{}, a); err != nil || v.Rows != 10 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}
