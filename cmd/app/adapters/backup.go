package adapters

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"castellan/config"
	"castellan/domain/kit/blob"
	"castellan/outbound/folder"
	"castellan/outbound/s3"
)

// BackupTo opens an empty place for a backup: a folder, which is created, or s3://BUCKET/NAME on the server of
// files.s3_url.
func BackupTo(c config.Files, place string) (blob.Store, error) {
	if name, is := strings.CutPrefix(place, "s3://"); is {
		return backupBucket(c, name)
	}
	if _, bucket, _ := c.Bucket(); bucket == "" {
		to, err := filepath.Abs(place)
		own, oerr := filepath.Abs(c.Folder)
		if err := errors.Join(err, oerr); err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(own, to); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return nil, fmt.Errorf("%s is inside of files.folder", place)
		}
	}
	return folder.Open(place)
}

// BackupFrom opens a place with a backup.
func BackupFrom(c config.Files, place string) (blob.Store, error) {
	if name, is := strings.CutPrefix(place, "s3://"); is {
		return backupBucket(c, name)
	}
	if _, err := os.Stat(place); err != nil {
		return nil, err
	}
	return folder.Open(place)
}

func backupBucket(c config.Files, name string) (blob.Store, error) {
	host, _, secure := c.Bucket()
	bucket, prefix, _ := strings.Cut(name, "/")
	if host == "" {
		return nil, errors.New("s3:// needs the server and the keys of files.s3_url")
	}
	if bucket == "" || !blob.Valid(prefix) {
		return nil, errors.New("want s3://BUCKET/NAME")
	}
	all, err := s3.New(s3.Config{Host: host, Secure: secure, Bucket: bucket, Region: c.S3Region,
		AccessKey: c.S3AccessKey, SecretKey: c.S3SecretKey.Reveal(), CAFile: c.S3CAFile})
	return below{all, prefix}, err
}

// below is the part of a store below a prefix.
type below struct {
	blob.Store
	prefix string
}

func (b below) key(k string) string { return b.prefix + "/" + k }

func (b below) Put(ctx context.Context, key string, content []byte) error {
	return b.Store.Put(ctx, b.key(key), content)
}

func (b below) Get(ctx context.Context, key string) (blob.File, error) {
	return b.Store.Get(ctx, b.key(key))
}

func (b below) Stat(ctx context.Context, key string) (blob.Info, error) {
	return b.Store.Stat(ctx, b.key(key))
}

func (b below) Delete(ctx context.Context, key string) error { return b.Store.Delete(ctx, b.key(key)) }

func (b below) List(ctx context.Context, area string) iter.Seq2[blob.Info, error] {
	prefix := b.prefix
	if area != blob.All {
		prefix = b.key(area)
	}
	return func(yield func(blob.Info, error) bool) {
		for info, err := range b.Store.List(ctx, prefix) {
			info.Key = strings.TrimPrefix(info.Key, b.prefix+"/")
			if !yield(info, err) {
				return
			}
		}
	}
}
