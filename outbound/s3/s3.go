// Package s3 keeps files in a bucket over the S3 protocol.
//
// The one idea: the bucket is private and the service is its only reader. A file is put by one request, so it is
// complete or absent. Every request has a time limit; a failed request is retried a few times.
//
// Start reading at New.
package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"iter"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"castellan/domain/kit/blob"
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
	client *minio.Client
	bucket string
}

var _ blob.Store = (*Store)(nil)

const (
	tries = 3
	// answerTime is how long the server may take to begin its answer.
	answerTime = 10 * time.Second
	idleConns  = 32
)

// New returns the files of a bucket. It does not connect.
func New(c Config) (*Store, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTime
	transport.MaxIdleConnsPerHost = idleConns
	transport.DisableCompression = true // bytes arrive as they are stored
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificate authorities of the bucket: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificate authorities of the bucket: %s contains no certificate", c.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client, err := minio.New(c.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""),
		Secure: c.Secure, Region: c.Region, BucketLookup: minio.BucketLookupPath,
		Transport: transport, MaxRetries: tries,
	})
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	return &Store{client, c.Bucket}, nil
}

func (s *Store) Put(ctx context.Context, key string, content []byte) error {
	if !blob.Valid(key) {
		return fmt.Errorf("put a file: %q is not a valid key", key)
	}
	_, err := s.client.PutObject(ctx, s.bucket, key, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
	if err != nil {
		return blob.Failed("put", err)
	}
	return nil
}

func (s *Store) Get(ctx context.Context, key string) (blob.File, error) {
	if !blob.Valid(key) {
		return blob.File{}, blob.ErrNotFound
	}
	o, err := s.client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return blob.File{}, describe("get", err)
	}
	info, err := o.Stat()
	if err != nil {
		_ = o.Close() // it was never open
		return blob.File{}, describe("get", err)
	}
	return blob.File{Info: about(info), ReadSeekCloser: o}, nil
}

func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if !blob.Valid(key) {
		return blob.Info{}, blob.ErrNotFound
	}
	info, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return blob.Info{}, describe("stat", err)
	}
	return about(info), nil
}

func (s *Store) Delete(ctx context.Context, key string) error {
	if !blob.Valid(key) {
		return nil
	}
	if err := s.client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}); err != nil {
		return blob.Failed("delete", err)
	}
	return nil
}

func (s *Store) List(ctx context.Context, area string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if !blob.Valid(area) {
			return
		}
		options := minio.ListObjectsOptions{Prefix: area + "/", Recursive: true}
		for o := range s.client.ListObjectsIter(ctx, s.bucket, options) {
			if o.Err != nil {
				yield(blob.Info{}, blob.Failed("list", o.Err))
				return
			}
			if blob.Valid(o.Key) && !yield(about(o), nil) { // objects of other writers are ignored
				return
			}
		}
	}
}

func about(o minio.ObjectInfo) blob.Info {
	return blob.Info{Key: o.Key, Size: o.Size, Modified: o.LastModified, Version: o.ETag}
}

// describe returns ErrNotFound for a missing object.
func describe(doing string, err error) error {
	if r := minio.ToErrorResponse(err); r.StatusCode == http.StatusNotFound && r.Code != minio.NoSuchBucket {
		return blob.ErrNotFound
	}
	return blob.Failed(doing, err)
}
