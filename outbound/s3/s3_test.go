package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/blob/blobtest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

const (
	accessKey = "CASTELLANTESTKEY"
	secretKey = "a secret of the test"
	bucket    = "castellan-files"
	region    = "eu-central-1"
)

// gate accepts requests whose signature a second implementation (AWS's SigV4 signer) also produces.
type gate struct {
	next http.Handler
	seen func(r *http.Request)
}

func (g gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.seen != nil {
		g.seen(r)
	}
	if problem := judge(r); problem != "" {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>"+problem+"</Message></Error>")
		return
	}
	g.next.ServeHTTP(w, r)
}

func judge(r *http.Request) string {
	given := r.Header.Get("Authorization")
	_, signed, _ := strings.Cut(given, "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return "date"
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "https://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return "request"
	}
	names := strings.Split(signed, ";")
	for _, name := range names {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength, _ = strconv.ParseInt(r.Header.Get(name), 10, 64)
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	for _, name := range []string{"host", "x-amz-date", "x-amz-content-sha256"} {
		if !slices.Contains(names, name) {
			return "unsigned " + name
		}
	}
	again.Header.Del("X-Amz-Date") // the signer sets it
	hash := r.Header.Get("X-Amz-Content-Sha256")
	err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		again, hash, "s3", region, at, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil || !hmac.Equal([]byte(strip(again.Header.Get("Authorization"))), []byte(strip(given))) {
		return "signature"
	}
	if len(hash) == hex.EncodedLen(sha256.Size) {
		body, err := io.ReadAll(r.Body)
		if sum := sha256.Sum256(body); err != nil || hex.EncodeToString(sum[:]) != hash {
			return "body"
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	return ""
}

func strip(s string) string { return strings.ReplaceAll(s, " ", "") }

// serve starts a bucket behind a gate, over TLS, and returns its configuration.
func serve(t *testing.T, seen func(r *http.Request)) Config {
	t.Helper()
	memory := s3mem.New()
	storetest.Must(t, memory.CreateBucket(bucket))
	server := httptest.NewTLSServer(gate{gofakes3.New(memory).Server(), seen})
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	storetest.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}), 0o600))
	return Config{Host: server.Listener.Addr().String(), Secure: true, Bucket: bucket, Region: region,
		AccessKey: accessKey, SecretKey: secretKey, CAFile: ca}
}

func open(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := New(c)
	storetest.Must(t, err)
	return s
}

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, serve(t, nil)) })
}

// A server that refuses, is missing or has an untrusted certificate is UNAVAILABLE, and no secret is in the error.
func TestRefusals(t *testing.T) {
	good := serve(t, nil)
	for name, spoil := range map[string]func(c *Config){
		"secret":      func(c *Config) { c.SecretKey = "another secret" },
		"access key":  func(c *Config) { c.AccessKey = "CASTELLANOTHERKEY" },
		"region":      func(c *Config) { c.Region = "eu-west-1" },
		"bucket":      func(c *Config) { c.Bucket = "castellan-others" },
		"certificate": func(c *Config) { c.CAFile = "" },
		"address":     func(c *Config) { c.Host = "127.0.0.1:1" },
	} {
		c := good
		spoil(&c)
		s := open(t, c)
		err := s.Put(t.Context(), "document/x", []byte("x"))
		storetest.Wants(t, err, fault.Unavailable)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		for info, err := range s.List(t.Context(), "document") {
			if fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%s lists %v, %v", name, info, err)
			}
		}
	}
	for _, file := range []string{"nowhere", "s3_test.go"} {
		c := good
		c.CAFile = file
		if _, err := New(c); err == nil {
			t.Errorf("the authorities of %s were taken", file)
		}
	}
}

// A file is stored by one request, whose body the server can check.
func TestOneRequest(t *testing.T) {
	var seen []string
	s := open(t, serve(t, func(r *http.Request) { seen = append(seen, r.Method+" "+r.URL.Path) }))
	storetest.Must(t, s.Put(t.Context(), "document/x", make([]byte, 20<<20)))
	if !slices.Equal(seen, []string{"PUT /" + bucket + "/document/x"}) {
		t.Errorf("requests %q", seen)
	}
}
