package kit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"castellan/domain/kit/audit"
)

// archiveFile is the content of a file: lines of JSON, compressed by gzip. The first is
// archiveHead, then come rows, then checkpoints, and the last line holds the MAC of all
// before it with the audit key.
type archiveFile struct {
	Counter  int64
	At       int64           // ms
	Previous []byte          // digest of the file before; nil for the first
	From     map[string]head // where the rows of each chain begin: behind this one
	Mark     audit.Anchor    // where the checkpoints begin: behind this one

	Rows        []auditRow
	Checkpoints []checkpointRow

	// The end of the file.
	Heads     map[string]head
	End       audit.Anchor
	transfers int64
}

type archiveHead struct {
	Format   string          `json:"format"`
	Counter  int64           `json:"counter"`
	At       int64           `json:"at"`
	Previous []byte          `json:"previous,omitempty"`
	From     map[string]head `json:"from"`
	Mark     int64           `json:"checkpoint"`
	MarkHash []byte          `json:"checkpointMac,omitempty"`
}

const archiveFormat = "castellan audit archive 1"

// archiveLine is any line but the first.
type archiveLine struct {
	Row        *auditRow      `json:"row,omitempty"`
	Checkpoint *checkpointRow `json:"checkpoint,omitempty"`
	MAC        []byte         `json:"mac,omitempty"`
}

// add proves rows that follow h in their chain, and takes them.
func (f *archiveFile) add(key []byte, h head, rows []auditRow) (head, error) {
	mac := macOf(key)
	for _, r := range rows {
		if r.Seq != h.Seq+1 || !hmac.Equal(r.Hash, r.sum(mac, h.Hash)) {
			return h, fmt.Errorf("%w: chain %s, row %d", ErrTampered, r.Chain, h.Seq+1)
		}
		h = head{r.Seq, r.Hash}
		if r.Action == KeptAction {
			f.transfers++
		}
	}
	f.Rows = append(f.Rows, rows...)
	f.Heads[rows[0].Chain] = h
	return h, nil
}

// proveMarks proves the checkpoints of the file and sets what they end in.
func (f *archiveFile) proveMarks(key []byte) error {
	f.End = f.Mark
	for _, c := range f.Checkpoints {
		if c.Counter != f.End.Counter+1 || !hmac.Equal(c.Hash, c.sum(macOf(key), f.End.MAC)) {
			return fmt.Errorf("%w: checkpoint %d", ErrTampered, f.End.Counter+1)
		}
		f.End = c.anchor()
	}
	return nil
}

// seal makes the file and the row that names it.
func (f *archiveFile) seal(key []byte, before archiveRow) (row archiveRow, content []byte, err error) {
	var text, packed bytes.Buffer
	out := json.NewEncoder(&text)
	errs := []error{out.Encode(archiveHead{Format: archiveFormat, Counter: f.Counter, At: f.At, Previous: f.Previous,
		From: f.From, Mark: f.Mark.Counter, MarkHash: f.Mark.MAC})}
	for _, r := range f.Rows {
		errs = append(errs, out.Encode(archiveLine{Row: &r}))
	}
	for _, c := range f.Checkpoints {
		errs = append(errs, out.Encode(archiveLine{Checkpoint: &c}))
	}
	errs = append(errs, out.Encode(archiveLine{MAC: archiveMAC(key, text.Bytes())}))
	z := gzip.NewWriter(&packed)
	_, err = z.Write(text.Bytes())
	heads, err2 := json.Marshal(f.Heads)
	if err := errors.Join(append(errs, err, err2, z.Close())...); err != nil {
		return row, nil, err
	}
	row = archiveRow{Counter: f.Counter, At: f.At, Digest: digestOf(packed.Bytes()), RowCount: int64(len(f.Rows)),
		Transfers: f.transfers, Heads: string(heads), Mark: f.End.Counter, MarkHash: f.End.MAC}
	if row.MarkHash == nil {
		row.MarkHash = []byte{}
	}
	row.Name = fmt.Sprintf("%06d-%x.jsonl.gz", row.Counter, row.Digest[:8])
	row.Hash = row.sum(macOf(key), before.Hash)
	return row, packed.Bytes(), nil
}

func archiveMAC(key, text []byte) []byte {
	return sumOf(macOf(key), withLength(withLength([]byte(nil), "archive file"), digestOf(text)))
}

// maxArchive bounds what a file may unpack to.
const maxArchive = 1 << 30

// readArchive reads a file and proves that it is whole: its MAC, and the chains of its
// rows and checkpoints.
func readArchive(key, content []byte) (f archiveFile, err error) {
	broken := func(what string) (archiveFile, error) { return f, fmt.Errorf("%w: %s", ErrTampered, what) }
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return broken("the file is not an archive")
	}
	text, err := io.ReadAll(io.LimitReader(z, maxArchive))
	end := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
	var last archiveLine
	if err != nil || json.Unmarshal(text[end:], &last) != nil || !hmac.Equal(last.MAC, archiveMAC(key, text[:end])) {
		return broken("the file is damaged or belongs to another deployment")
	}
	lines := bufio.NewReader(bytes.NewReader(text[:end]))
	line, _ := lines.ReadBytes('\n')
	var h archiveHead
	if json.Unmarshal(line, &h) != nil || h.Format != archiveFormat {
		return broken("the file has another format")
	}
	f = archiveFile{Counter: h.Counter, At: h.At, Previous: h.Previous, From: h.From, Heads: map[string]head{},
		Mark: audit.Anchor{Counter: h.Mark, MAC: h.MarkHash}}
	heads := maps.Clone(h.From)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			break
		}
		var l archiveLine
		if json.Unmarshal(line, &l) != nil {
			return broken("a line cannot be read")
		}
		switch {
		case l.Row != nil:
			if heads[l.Row.Chain], err = f.add(key, heads[l.Row.Chain], []auditRow{*l.Row}); err != nil {
				return f, err
			}
		case l.Checkpoint != nil:
			f.Checkpoints = append(f.Checkpoints, *l.Checkpoint)
		}
	}
	return f, f.proveMarks(key)
}

// Archives are files that were proven one after the other, to be joined with the
// database by VerifySince. The zero value has none.
type Archives struct {
	Rows     int64 // in them
	First    int64 // the number of the first
	last     int64
	digests  map[int64][]byte
	heads    map[string]head
	marks    map[int64][]byte // checkpoint → MAC
	mark     audit.Anchor
	previous []byte
}

// Add proves the next file. Files are given in the order of their numbers; the first
// may be any.
func (a *Archives) Add(key []byte, name string, content []byte) error {
	f, err := readArchive(key, content)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if a.First == 0 {
		a.First, a.digests, a.marks = f.Counter, map[int64][]byte{}, map[int64][]byte{}
		a.heads, a.mark, a.previous, a.last = map[string]head{}, f.Mark, f.Previous, f.Counter-1
	}
	joins := f.Counter == a.last+1 && bytes.Equal(f.Previous, a.previous) && f.Mark.Counter == a.mark.Counter &&
		bytes.Equal(f.Mark.MAC, a.mark.MAC)
	for chain, h := range f.From {
		before, known := a.heads[chain]
		joins = joins && (before.Seq == h.Seq && bytes.Equal(before.Hash, h.Hash) || !known && a.First > 1)
	}
	if !joins {
		return fmt.Errorf("%s: %w: archive %d does not follow the one before it", name, ErrTampered, f.Counter)
	}
	maps.Copy(a.heads, f.Heads)
	for _, c := range f.Checkpoints {
		a.marks[c.Counter] = c.Hash
	}
	a.last, a.mark, a.previous = f.Counter, f.End, digestOf(content)
	a.digests[f.Counter] = a.previous
	a.Rows += int64(len(f.Rows))
	return nil
}

// join compares the files with what the database says of them.
func (a *Archives) join(rows []archiveRow) error {
	for n, digest := range a.digests {
		if n < 1 || n > int64(len(rows)) || !bytes.Equal(rows[n-1].Digest, digest) {
			return fmt.Errorf("%w: archive %d differs from the one in the database", ErrTampered, n)
		}
	}
	return nil
}
