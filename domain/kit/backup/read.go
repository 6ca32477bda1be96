package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/keyring"
)

// Errors of a backup that is refused.
var (
	ErrIncomplete = errors.New("there is no complete backup here: the manifest is missing")
	ErrDamaged    = errors.New("the backup is damaged")
)

// Backup is a backup whose manifest is authentic.
type Backup struct {
	Manifest

	store blob.Store
}

// Open reads the manifest of a backup and verifies its signature. ErrIncomplete, ErrDamaged. A backup of another
// deployment is refused with an error that names the master key it needs.
func Open(ctx context.Context, store blob.Store, master keyring.Master) (*Backup, error) {
	text, err := blob.Read(ctx, store, manifestKey, maxManifestBytes)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, ErrIncomplete
	}
	if err != nil {
		return nil, err
	}
	manifest, rest, _ := bytes.Cut(text, []byte("\n"))
	b, own := &Backup{store: store}, signature{}
	if json.Unmarshal(manifest, &b.Manifest) != nil || json.Unmarshal(rest, &own) != nil {
		return nil, fmt.Errorf("%w: its manifest cannot be read", ErrDamaged)
	}
	if b.Format != Format {
		return nil, fmt.Errorf("the format of the backup is %q, this program reads %q", b.Format, Format)
	}
	key, err := master.AuditKey(b.Keys)
	if err != nil {
		return nil, fmt.Errorf("the backup is of another deployment, or was made with another master key: %w", err)
	}
	if !hmac.Equal(own.MAC, sign(key, manifest)) {
		return nil, fmt.Errorf("%w: its manifest was changed", ErrDamaged)
	}
	return b, nil
}

// Check reads the whole backup and compares every byte with its digest. ErrDamaged.
func (b *Backup) Check(ctx context.Context, progress func(done int64)) error {
	var done int64
	count := func(n int) { done += int64(n); progress(done) }
	for _, s := range b.Streams {
		for i := range s.Parts {
			content, err := b.part(ctx, s, i)
			if err != nil {
				return err
			}
			count(len(content))
		}
	}
	for f, err := range b.List(ctx) {
		if err != nil {
			return err
		}
		content, err := b.File(ctx, f)
		if err != nil {
			return err
		}
		count(len(content))
	}
	return nil
}

func (b *Backup) part(ctx context.Context, s Stream, number int) ([]byte, error) {
	return b.read(ctx, partKey(s.Name, number), s.Parts[number])
}

func (b *Backup) read(ctx context.Context, key string, want Part) ([]byte, error) {
	content, err := blob.Read(ctx, b.store, key, maxFileBytes)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, key)
	case err == nil && !want.is(content):
		err = fmt.Errorf("%w: %s was changed", ErrDamaged, key)
	case err != nil:
		err = fmt.Errorf("%s: %w", key, err)
	}
	return content, err
}

// Stream returns the content of a stream. Reading it returns ErrDamaged before a byte that differs.
func (b *Backup) Stream(ctx context.Context, name string) (io.Reader, error) {
	i := slices.IndexFunc(b.Streams, func(s Stream) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: it has no stream %s", ErrDamaged, name)
	}
	return &streamReader{ctx: ctx, from: b, stream: b.Streams[i]}, nil
}

// Tables returns the streams of the database.
func (b *Backup) Tables() (names []string) {
	for _, s := range b.Streams {
		if s.Name != fileList {
			names = append(names, s.Name)
		}
	}
	return names
}

type streamReader struct {
	ctx    context.Context
	from   *Backup
	stream Stream
	next   int
	rest   []byte
}

func (r *streamReader) Read(p []byte) (n int, err error) {
	for len(r.rest) == 0 {
		if r.next == len(r.stream.Parts) {
			return 0, io.EOF
		}
		if r.rest, err = r.from.part(r.ctx, r.stream, r.next); err != nil {
			return 0, err
		}
		r.next++
	}
	n = copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// List yields the files of the backup. A file that was replaced during the backup appears once, with its last content.
func (b *Backup) List(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		content, err := b.Stream(ctx, fileList)
		last, order := map[string]File{}, []string{}
		if err == nil {
			for lines := bufio.NewReader(content); err == nil; {
				var line []byte
				var f File
				if line, err = lines.ReadBytes('\n'); err == nil {
					err = json.Unmarshal(line, &f)
				}
				if err == nil {
					if _, known := last[f.Key]; !known {
						order = append(order, f.Key)
					}
					last[f.Key] = f
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(File{}, fmt.Errorf("list of files: %w", err))
			return
		}
		for _, key := range order {
			if !yield(last[key], nil) {
				return
			}
		}
	}
}

// File reads a file. ErrDamaged.
func (b *Backup) File(ctx context.Context, f File) ([]byte, error) {
	return b.read(ctx, path.Join(files, f.Key), f.Part)
}
