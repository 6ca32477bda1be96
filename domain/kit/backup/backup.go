// Package backup defines the form of a backup (D-EXT-17): the tables and files of a deployment at one instant, in a
// folder or a bucket.
//
// The one idea: the signed manifest is written last and names every byte by its digest. A backup without a manifest is
// incomplete, and one that was changed, truncated or made by another deployment is refused before anything is restored.
// The key of the signature is the audit key, which the manifest holds sealed by the master key. The master key itself
// is never part of a backup.
//
// Start reading at Manifest, then Writer and Open.
package backup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/keyring"
)

// Format is the version of the form. A program reads only its own.
const Format = "castellan backup 1"

// Databases of a backup. A backup of one is not restored to the other.
const (
	SQLite     = "SQLite"
	PostgreSQL = "PostgreSQL"
)

// partBytes is the size of a part of a stream. A writer and a reader hold one in memory.
const partBytes = 16 << 20

// The names in a backup.
const (
	manifestKey = "manifest.json"
	streams     = "streams"
	files       = "files"
)

// maxManifestBytes bounds a manifest: that of a database of 10 TiB has 60 MiB.
const maxManifestBytes = 256 << 20

// Manifest describes a backup.
type Manifest struct {
	Format   string    `json:"format"`
	Version  string    `json:"version"` // of the program
	Database string    `json:"database"`
	Point    time.Time `json:"point"` // every change that was acknowledged before this instant is in the backup
	Heads    Heads     `json:"heads"`
	// Migrations are those of the schema.
	Migrations []string `json:"migrations"`
	// Keys are the rows of the keys, sealed by the master key.
	Keys []keyring.Record `json:"keys"`
	// Streams are the database and the list of files. Sequences are the next values of PostgreSQL's sequences.
	Streams   []Stream         `json:"streams"`
	Sequences map[string]int64 `json:"sequences,omitempty"`
	Files     int              `json:"files"`
	Bytes     int64            `json:"bytes"` // of all parts and files
}

// Heads are the ends of the chains of the deployment. A restored database must have exactly these.
type Heads struct {
	Audit        map[string]int64 `json:"audit"` // the length of each chain
	Checkpoint   audit.Anchor     `json:"checkpoint"`
	Transfers    int64            `json:"transfers"`
	LastTransfer string           `json:"lastTransfer"`
	// EventsAfter is the last position of an event that a reader can have seen before the point.
	EventsAfter int64 `json:"eventsAfter"`
}

// Stream is a sequence of bytes that is stored in parts.
type Stream struct {
	Name  string `json:"name"`
	Parts []Part `json:"parts"`
}

// Part is a part of a stream, or a file.
type Part struct {
	Bytes  int64  `json:"bytes"`
	SHA256 []byte `json:"sha256"`
}

// File is a line of the list of files.
type File struct {
	Key string `json:"key"`
	Part
}

// fileList is the name of the stream with a line for each file.
const fileList = "files"

// signature is the second line of a manifest.
type signature struct {
	MAC []byte `json:"mac"`
}

// sign returns the signature of a manifest. Its key is derived, so that it signs nothing else.
func sign(auditKey, manifest []byte) []byte {
	derived := hmac.New(sha256.New, auditKey)
	derived.Write([]byte(Format))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write(manifest)
	return mac.Sum(nil)
}

func partKey(stream string, number int) string {
	return path.Join(streams, stream, fmt.Sprintf("%06d", number))
}

func part(content []byte) Part {
	sum := sha256.Sum256(content)
	return Part{int64(len(content)), sum[:]}
}

func (p Part) is(content []byte) bool {
	sum := sha256.Sum256(content)
	return p.Bytes == int64(len(content)) && bytes.Equal(p.SHA256, sum[:])
}

// Writer writes a backup to an empty store.
type Writer struct {
	Manifest

	store    blob.Store
	progress func(done int64)
	list     []byte // the unwritten end of the list of files
	seen     map[string]bool
}

// NewWriter returns a writer. progress is called with the number of bytes that are stored. An error if the store has
// files.
func NewWriter(ctx context.Context, store blob.Store, progress func(done int64)) (*Writer, error) {
	for info, err := range store.List(ctx, blob.All) {
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("not empty: it contains %s", info.Key)
	}
	return &Writer{Manifest: Manifest{Format: Format}, store: store, progress: progress,
		seen: map[string]bool{}}, nil
}

func (w *Writer) put(ctx context.Context, key string, content []byte) (Part, error) {
	if err := w.store.Put(ctx, key, content); err != nil {
		return Part{}, err
	}
	w.Bytes += int64(len(content))
	w.progress(w.Bytes)
	return part(content), nil
}

// Stream writes a stream: fill gets its writer.
func (w *Writer) Stream(ctx context.Context, name string, fill func(*StreamWriter) error) error {
	s := &StreamWriter{ctx: ctx, to: w, stream: Stream{Name: name, Parts: []Part{}}}
	err := fill(s)
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.Streams = append(w.Streams, s.stream)
	return nil
}

// StreamWriter is an io.Writer of one stream.
type StreamWriter struct {
	ctx    context.Context
	to     *Writer
	stream Stream
	buffer []byte
}

func (s *StreamWriter) Write(b []byte) (n int, err error) {
	for n = len(b); len(b) > 0; {
		took := min(len(b), partBytes-len(s.buffer))
		s.buffer, b = append(s.buffer, b[:took]...), b[took:]
		if len(s.buffer) == partBytes {
			if err := s.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (s *StreamWriter) flush() error {
	if len(s.buffer) == 0 {
		return nil
	}
	p, err := s.to.put(s.ctx, partKey(s.stream.Name, len(s.stream.Parts)), s.buffer)
	s.stream.Parts, s.buffer = append(s.stream.Parts, p), s.buffer[:0]
	return err
}

// Files copies the files that were not copied yet. A file that is removed meanwhile is left out: no row of a later
// instant names it. Call it before the copy of the database, for the most of them, and after it, for the rest.
func (w *Writer) Files(ctx context.Context, from blob.Store) error {
	for info, err := range from.List(ctx, blob.All) {
		if err != nil {
			return err
		}
		if w.seen[info.Key] && blob.Generated(info.Key) || underTemporary(info.Key) {
			continue
		}
		content, err := blob.Read(ctx, from, info.Key, maxFileBytes)
		if errors.Is(err, blob.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", info.Key, err)
		}
		p, err := w.put(ctx, path.Join(files, info.Key), content)
		if err != nil {
			return err
		}
		if !w.seen[info.Key] {
			w.Manifest.Files++
		}
		w.seen[info.Key] = true
		line, err := json.Marshal(File{info.Key, p})
		if err != nil {
			return err
		}
		w.list = append(append(w.list, line...), '\n')
	}
	return nil
}

// maxFileBytes bounds a file in memory. Uploads are far smaller.
const maxFileBytes = 1 << 30

func underTemporary(key string) bool {
	area, _, _ := bytes.Cut([]byte(key), []byte("/"))
	return string(area) == blob.Temporary
}

// Close writes the list of files and the manifest: the backup is complete.
func (w *Writer) Close(ctx context.Context, auditKey []byte) error {
	err := w.Stream(ctx, fileList, func(s *StreamWriter) error { _, err := s.Write(w.list); return err })
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(w.Manifest)
	if err != nil {
		return err
	}
	mac, err := json.Marshal(signature{sign(auditKey, manifest)})
	if err != nil {
		return err
	}
	return w.store.Put(ctx, manifestKey, bytes.Join([][]byte{manifest, mac, nil}, []byte("\n")))
}
