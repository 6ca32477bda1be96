// Package blob stores files: bytes under a key, in a folder or in a bucket (docs/operations/install.md, "Files"). A
// row of the owning slice records what a file means.
//
// The one idea: bytes come first and the row commits after them. A process that is killed in between leaves bytes that
// no row names; the sweeper (Sweep) removes them after an hour. So a row never names bytes that are not there.
//
// How a slice stores files:
//
//	key := blob.NewKey("agreement", ".pdf", now) // agreement/7K/QX/01JD….pdf
//	err := files.Put(ctx, key, content)          // before the transaction
//	… commit the row that holds the key
//
// Its area (the first segment of its keys) gets an Owner, which the sweeper asks for the keys that have rows; the part
// of the slice declares it (cmd/app/part.go). To replace a file, put the new bytes under a new key and point the row to
// it. A file is never overwritten while it is read, and the sweeper removes the old bytes.
//
// Public files, served at {cdn_url}/<path>, are stored in the area Public under the key PublicKey(path). Only pictures
// made by picture.Decoder.Clean may be stored there.
//
// Start reading at Store; blobtest tests its contract.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// ErrNotFound is returned for an invalid key and for a key without a file.
var ErrNotFound = errors.New("there is no such file")

// Store stores files. It is safe for concurrent use and passes blobtest.Run. Besides the errors listed at each method,
// all methods return UNAVAILABLE if the disk or the remote side fails.
type Store interface {
	// Put stores content under a key and replaces an existing file. When it returns, the bytes survive a crash; before
	// that a reader sees the old bytes or the new ones, never a part. An invalid key is a programming error.
	Put(ctx context.Context, key string, content []byte) error
	// Get opens a file; the caller closes it. ErrNotFound.
	Get(ctx context.Context, key string) (File, error)
	// Stat describes a file without opening it. ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
	// Delete removes a file; a missing file is not an error.
	Delete(ctx context.Context, key string) error
	// List yields every file of an area, in no order; those of all areas for All. It stops at the first error.
	List(ctx context.Context, area string) iter.Seq2[Info, error]
}

// Info describes a file without its content.
type Info struct {
	Key      string
	Size     int64 // in bytes
	Modified time.Time
	// Version changes whenever the bytes change: the base of an ETag.
	Version string
}

// File is an open file.
type File struct {
	Info
	io.ReadSeekCloser
}

// Read returns the whole content of a file of at most limit bytes. ErrNotFound.
func Read(ctx context.Context, s Store, key string, limit int64) ([]byte, error) {
	f, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size > limit {
		return nil, errors.New("the file is too large")
	}
	content := make([]byte, f.Size)
	_, err = io.ReadFull(f, content)
	return content, err
}

const (
	maxKeyBytes = 512
	// maxNameBytes is the longest segment that file systems accept.
	maxNameBytes = 200
)

// All is the area that contains every other.
const All = "*"

// Public is the area of the files that any client may fetch.
const Public = "public"

// PublicKey returns the key of the file at {cdn_url}/<path>.
func PublicKey(path string) string { return Public + "/" + path }

// PublicPath returns the path below {cdn_url} of a key made by PublicKey.
func PublicPath(key string) string { return strings.TrimPrefix(key, Public+"/") }

// NewKey makes a unique key that cannot be guessed: <area>/aa/bb/<id><ext>. The two folders in between spread the files
// evenly. Ext is "" or begins with a dot.
func NewKey(area, ext string, now time.Time) string {
	name := id.New(now)
	return path.Join(area, name[id.Len-2:], name[id.Len-4:id.Len-2], name+ext)
}

// Generated reports whether a key was made by NewKey, so that its bytes never change.
func Generated(key string) bool {
	dir, name := path.Split(key)
	stem, _, _ := strings.Cut(name, ".")
	return len(stem) == id.Len && strings.HasSuffix(dir, "/"+stem[id.Len-2:]+"/"+stem[id.Len-4:id.Len-2]+"/")
}

// Valid reports whether key is a key: segments of letters, digits and . _ - that do not begin with a dot, joined by
// single slashes, and no segment is a device name on any system. Every Store rejects an invalid key.
func Valid(key string) bool {
	if len(key) > maxKeyBytes {
		return false
	}
	for name := range strings.SplitSeq(key, "/") {
		if !ValidName(name) {
			return false
		}
	}
	return true
}

// ValidName reports whether a key may contain the segment.
func ValidName(name string) bool {
	if name == "" || name[0] == '.' || name[len(name)-1] == '.' || len(name) > maxNameBytes {
		return false
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	stem, _, _ := strings.Cut(name, ".")
	return !device(strings.ToUpper(stem))
}

// device reports whether a name is a device name on some system, with any extension.
func device(stem string) bool {
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "COM" || stem[:3] == "LPT") && '0' <= stem[3] && stem[3] <= '9'
}

// Failed returns the error of an adapter whose disk or remote side fails: UNAVAILABLE, with the cause for the log.
func Failed(doing string, err error) error {
	return fmt.Errorf("%s a file: %w: %w", doing,
		fault.New(fault.Unavailable, "files cannot be stored or read at the moment").After(time.Second), err)
}
