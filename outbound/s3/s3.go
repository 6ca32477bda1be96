// Package s3 keeps files in a bucket over the S3 protocol.
//
// The one idea: the bucket is private and the service is its only reader. A file is put by one request, so it is
// complete or absent. Every request has a time limit; a failed request is retried a few times. The service needs five
// requests of the protocol, which are those of net/http with a signature (request.go).
//
// Start reading at New.
package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"castellan/domain/kit/blob"
	"castellan/outbound/fetch"
)

// Config describes a bucket.
type Config struct {
	Host   string // with a port where needed
	Secure bool   // https
	Bucket string
	Region string

	AccessKey, SecretKey string
	// CAFile holds the only trusted certificates (PEM) for the server; "" trusts those of the system.
	CAFile string
}

type Store struct {
	config Config
	client *http.Client
}

var _ blob.Store = (*Store)(nil)

const (
	// answerTime is how long the server may take to begin its answer.
	answerTime = 10 * time.Second
	idleConns  = 32
	// maxListBytes bounds an answer with at most 1000 files.
	maxListBytes = 8 << 20
)

// New returns the files of a bucket. It does not connect.
func New(c Config) (*Store, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTime
	transport.MaxIdleConnsPerHost = idleConns
	transport.DisableCompression = true // bytes arrive as they are stored
	roots, err := fetch.Roots(c.CAFile, false)
	if err != nil {
		return nil, fmt.Errorf("certificate authorities of the bucket: %w", err)
	}
	return &Store{c, fetch.HTTPClient(0, roots, transport)}, nil
}

func (s *Store) Put(ctx context.Context, key string, content []byte) error {
	if !blob.Valid(key) {
		return fmt.Errorf("put a file: %q is not a valid key", key)
	}
	r, err := s.send(ctx, request{method: http.MethodPut, key: key, body: content})
	if err != nil {
		return blob.Failed("put", err)
	}
	fetch.Drain(r)
	return nil
}

// Get opens a file. The context is also that of reading it.
func (s *Store) Get(ctx context.Context, key string) (blob.File, error) {
	if !blob.Valid(key) {
		return blob.File{}, blob.ErrNotFound
	}
	r, err := s.send(ctx, request{method: http.MethodGet, key: key})
	if err != nil {
		return blob.File{}, describe("get", err)
	}
	info, err := about(key, r)
	if err != nil {
		fetch.Drain(r)
		return blob.File{}, blob.Failed("get", err)
	}
	o := &object{store: s, ctx: ctx, info: info, body: r.Body}
	if err := o.readHead(); err != nil {
		fetch.Drain(r)
		return blob.File{}, blob.Failed("get", err)
	}
	return blob.File{Info: info, ReadSeekCloser: o}, nil
}

func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if !blob.Valid(key) {
		return blob.Info{}, blob.ErrNotFound
	}
	r, err := s.send(ctx, request{method: http.MethodHead, key: key})
	if err != nil {
		return blob.Info{}, describe("stat", err)
	}
	fetch.Drain(r)
	info, err := about(key, r)
	if err != nil {
		return blob.Info{}, blob.Failed("stat", err)
	}
	return info, nil
}

func (s *Store) Delete(ctx context.Context, key string) error {
	if !blob.Valid(key) {
		return nil
	}
	r, err := s.send(ctx, request{method: http.MethodDelete, key: key})
	if err == nil {
		fetch.Drain(r)
	} else if describe("delete", err) != blob.ErrNotFound {
		return blob.Failed("delete", err)
	}
	return nil
}

func (s *Store) List(ctx context.Context, area string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		prefix := ""
		if area != blob.All {
			if !blob.Valid(area) {
				return
			}
			prefix = area + "/"
		}
		for next := ""; ; {
			page, err := s.page(ctx, prefix, next)
			if err != nil {
				yield(blob.Info{}, blob.Failed("list", err))
				return
			}
			for _, o := range page.Contents {
				if page.EncodingType == "url" {
					o.Key, _ = url.QueryUnescape(o.Key) // "" is not a valid key
				}
				if !blob.Valid(o.Key) || !strings.HasPrefix(o.Key, prefix) {
					continue // of other writers
				}
				if !yield(blob.Info{Key: o.Key, Size: o.Size, Modified: o.LastModified, Version: version(o.ETag)}, nil) {
					return
				}
			}
			if next = page.NextContinuationToken; next == "" {
				return
			}
		}
	}
}

// page is a part of a list. Keys are requested in the encoding of URLs, because XML cannot hold every key.
type page struct {
	Contents []struct {
		Key          string
		Size         int64
		LastModified time.Time
		ETag         string
	}
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
}

func (s *Store) page(ctx context.Context, prefix, next string) (page, error) {
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {prefix}}
	if next != "" {
		query.Set("continuation-token", next)
	}
	r, err := s.send(ctx, request{method: http.MethodGet, query: query})
	if err != nil {
		return page{}, err
	}
	defer fetch.Drain(r)
	var p page
	if err := xml.NewDecoder(io.LimitReader(r.Body, maxListBytes)).Decode(&p); err != nil {
		return page{}, err
	}
	if p.IsTruncated != (p.NextContinuationToken != "") {
		return page{}, errors.New("the list does not say how it continues")
	}
	return p, nil
}

func about(key string, r *http.Response) (blob.Info, error) {
	modified, err := http.ParseTime(r.Header.Get("Last-Modified"))
	if err != nil || r.ContentLength < 0 {
		return blob.Info{}, errors.New("the answer has no time or no length")
	}
	return blob.Info{Key: key, Size: r.ContentLength, Modified: modified, Version: version(r.Header.Get("ETag"))}, nil
}

func version(etag string) string { return strings.Trim(etag, `"`) }

// describe returns ErrNotFound for a missing object.
func describe(doing string, err error) error {
	refused, is := errors.AsType[*refusal](err)
	if is && refused.status == http.StatusNotFound && refused.code != "NoSuchBucket" {
		return blob.ErrNotFound
	}
	return blob.Failed(doing, err)
}
