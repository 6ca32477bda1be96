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
	return storetest.Value(New(c))(t)
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
			storetest.Wants(t, err, fault.Unavailable, name, "lists", info)
		}
	}
	for _, file := range []string{"nowhere", "s3_test.go"} {
		c := good
		c.CAFile = file
		storetest.Fails(t, storetest.Err(New(c)), "", "the authorities of", file, "were taken")
	}
}

// A file is stored by one request, whose body the server can check.
func TestOneRequest(t *testing.T) {
	var seen []string
	s := open(t, serve(t, func(r *http.Request) { seen = append(seen, r.Method+" "+r.URL.Path) }))
	storetest.Must(t, s.Put(t.Context(), "document/x", make([]byte, 20<<20)))
	storetest.Same(t, seen, []string{"PUT /" + bucket + "/document/x"}, "requests")
}

// answers is a bucket that gives these answers in turn, the last one repeatedly, and keeps the requests.
func answers(t *testing.T, seen *[]*http.Request, all ...http.HandlerFunc) *Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r)
		all[min(len(*seen), len(all))-1](w, r)
	}))
	t.Cleanup(server.Close)
	return open(t, Config{Host: server.Listener.Addr().String(), Bucket: bucket, Region: region})
}

func status(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) }
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

func cut(w http.ResponseWriter, _ *http.Request) {
	connection, _, _ := w.(http.Hijacker).Hijack()
	_ = connection.Close()
}

// A request is repeated twice if the server may answer later, and not if it refuses.
func TestTries(t *testing.T) {
	for name, c := range map[string]struct {
		all   []http.HandlerFunc
		tries int
		ok    bool
	}{
		"busy, lost, then good": {[]http.HandlerFunc{status(503), cut, status(200)}, 3, true},
		"always busy":           {[]http.HandlerFunc{status(503)}, 3, false},
		"too many":              {[]http.HandlerFunc{status(429), status(200)}, 2, true},
		"forbidden":             {[]http.HandlerFunc{status(403)}, 1, false},
		"moved": {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}}, 1, false},
	} {
		var seen []*http.Request
		err := answers(t, &seen, c.all...).Put(t.Context(), "document/x", []byte("x"))
		if len(seen) != c.tries || (err == nil) != c.ok || err != nil && fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %d requests, %v", name, len(seen), err)
		}
	}
}

// A list continues until the server has no further part. Keys are decoded if they are encoded, and those outside the
// area or invalid are left out.
func TestPages(t *testing.T) {
	entry := func(key string) string {
		return "<Contents><Key>" + key + "</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>" +
			"&quot;e&quot;</ETag><Size>3</Size></Contents>"
	}
	var seen []*http.Request
	s := answers(t, &seen,
		text("<ListBucketResult><EncodingType>url</EncodingType>"+entry("document%2Fa")+entry("document%2Fa+b")+
			"<IsTruncated>true</IsTruncated><NextContinuationToken>1+/=</NextContinuationToken></ListBucketResult>"),
		text("<ListBucketResult>"+entry("document/b")+entry("documents/c")+entry("document%2Fd")+"</ListBucketResult>"))
	var got []string
	for info, err := range s.List(t.Context(), "document") {
		storetest.Must(t, err)
		if got = append(got, info.Key); info.Size != 3 || info.Version != "e" || info.Modified.Year() != 2026 {
			t.Errorf("%+v", info)
		}
	}
	if !slices.Equal(got, []string{"document/a", "document/b"}) || len(seen) != 2 ||
		seen[1].URL.Query().Get("continuation-token") != "1+/=" || seen[1].URL.Query().Get("prefix") != "document/" {
		t.Errorf("%q after %d requests, the last with %s", got, len(seen), seen[len(seen)-1].URL.RawQuery)
	}
	seen = nil
	endless := answers(t, &seen, text("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"))
	for info, err := range endless.List(t.Context(), "document") {
		storetest.Wants(t, err, fault.Unavailable, info)
	}
}

// The first bytes are read again without a request, another place by one for the rest. A file that was replaced
// meanwhile is not mixed with the new one.
func TestParts(t *testing.T) {
	var seen []string
	c := serve(t, func(r *http.Request) { seen = append(seen, r.Method+" "+r.Header.Get("Range")) })
	s := open(t, c)
	content := []byte(strings.Repeat("0123456789", 200))
	storetest.Must(t, s.Put(t.Context(), "document/x", content))
	seen = nil
	f := storetest.Value(s.Get(t.Context(), "document/x"))(t)
	defer f.Close()
	read := func(from int64, whence, n int) (string, error) {
		_, err := f.Seek(from, whence)
		storetest.Must(t, err)
		part := make([]byte, n)
		n, err = io.ReadFull(f, part)
		return string(part[:n]), err
	}
	for _, want := range []struct{ from, n, requests int }{{0, 16, 1}, {0, 2000, 1}, {1995, 5, 2}, {3, 7, 2}} {
		got, err := read(int64(want.from), io.SeekStart, want.n)
		if err != nil || got != string(content[want.from:want.from+want.n]) || len(seen) != want.requests {
			t.Errorf("%+v: %.20q, %v after %q", want, got, err, seen)
		}
	}
	if got, err := read(-10, io.SeekEnd, 11); got != "0123456789" || err != io.ErrUnexpectedEOF {
		t.Errorf("the end is %q, %v", got, err)
	}
	storetest.Equal(t, seen[1], "GET bytes=1995-", seen)
	storetest.Must(t, s.Put(t.Context(), "document/x", []byte(strings.Repeat("x", len(content)))))
	if got, err := read(1000, io.SeekStart, 1); got != "" || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a replaced file: %q, %v", got, err)
	}
}
