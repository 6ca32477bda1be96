// Package folder keeps files in a local folder: the default of blob.Store.
//
// The one idea: the folder is opened once as a root (os.Root) that no name can leave, neither by ../ nor by a link. A
// file appears under its name only when it is complete: temporary file, fsync, rename, fsync of the folder.
//
// Start reading at Put.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/id"
)

// Store is a blob.Store in a folder. Several processes may share a folder.
type Store struct{ root *os.Root }

var _ blob.Store = (*Store)(nil)

const (
	// Only the service reads the files.
	folderMode = 0o700
	fileMode   = 0o600
)

// Open opens a folder, and creates it if it is missing.
func Open(dir string) (*Store, error) {
	err := os.MkdirAll(dir, folderMode)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			return &Store{root}, nil
		}
	}
	return nil, fmt.Errorf("open the folder of files: %w", err)
}

func (s *Store) Close() error { return s.root.Close() }

func (s *Store) Put(_ context.Context, key string, content []byte) error {
	if !blob.Valid(key) {
		return fmt.Errorf("put a file: %q is not a valid key", key)
	}
	if err := s.put(key, content); err != nil {
		return blob.Failed("put", err)
	}
	return nil
}

func (s *Store) put(key string, content []byte) error {
	if err := s.makeFolder(blob.Temporary); err != nil {
		return err
	}
	if err := s.makeFolder(path.Dir(key)); err != nil {
		return err
	}
	temporary := path.Join(blob.Temporary, id.New(time.Now()))
	err := s.write(temporary, content)
	if err == nil {
		err = s.root.Rename(temporary, key)
	}
	if err != nil {
		_ = s.root.Remove(temporary) // a remaining file is swept
		return err
	}
	return s.sync(path.Dir(key))
}

func (s *Store) write(name string, content []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// makeFolder creates a folder and its parents, each durable in its parent.
func (s *Store) makeFolder(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := s.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := s.makeFolder(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.root.Mkdir(dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.sync(path.Dir(dir))
}

// sync makes the names in a folder durable.
func (s *Store) sync(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (s *Store) Get(_ context.Context, key string) (blob.File, error) {
	if !blob.Valid(key) {
		return blob.File{}, blob.ErrNotFound
	}
	f, err := s.root.Open(key)
	if err != nil {
		return blob.File{}, hidePaths("get", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = f.Close() // it was only read
		return blob.File{}, hidePaths("get", err)
	}
	return blob.File{Info: about(key, info), ReadSeekCloser: f}, nil
}

func (s *Store) Stat(_ context.Context, key string) (blob.Info, error) {
	if !blob.Valid(key) {
		return blob.Info{}, blob.ErrNotFound
	}
	info, err := s.root.Stat(key)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return blob.Info{}, hidePaths("stat", err)
	}
	return about(key, info), nil
}

// Delete removes a file. The sweeper repeats a removal that a crash undoes.
func (s *Store) Delete(_ context.Context, key string) error {
	if !blob.Valid(key) {
		return nil
	}
	if err := s.root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blob.Failed("delete", err)
	}
	return nil
}

func (s *Store) List(ctx context.Context, area string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if area == blob.All {
			area = "."
		} else if !blob.Valid(area) {
			return
		}
		err := fs.WalkDir(s.root.FS(), area, func(key string, entry fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed meanwhile
				return nil
			case err != nil:
				return err
			case !entry.Type().IsRegular(), !blob.Valid(key):
				return nil
			}
			info, err := entry.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case !yield(about(key, info), nil):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(blob.Info{}, blob.Failed("list", err))
		}
	}
}

func about(key string, info fs.FileInfo) blob.Info {
	// Every Put creates a separate file, so a number distinguishes two files of one clock tick.
	var number uint64
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		number = sys.Ino
	}
	at := info.ModTime()
	return blob.Info{Key: key, Size: info.Size(), Modified: at,
		Version: strconv.FormatInt(at.UnixNano(), 36) + "-" + strconv.FormatUint(number, 36)}
}

// hidePaths hides the local paths if a file is missing, or if there is a file in place of a folder.
func hidePaths(doing string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return blob.ErrNotFound
	}
	return blob.Failed(doing, err)
}
