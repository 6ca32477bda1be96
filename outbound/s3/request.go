package s3

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"castellan/outbound/fetch"
)

const (
	tries = 3
	// pause is the longest time before the second request; it doubles with each further one.
	pause         = 400 * time.Millisecond
	maxErrorBytes = 64 << 10
)

// request is a request to the bucket, or to the object with a key.
type request struct {
	method, key string
	query       url.Values
	header      http.Header
	body        []byte
}

// refusal is an answer that reports an error.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the bucket answered %d %s: %s", r.status, r.code, r.message)
}

// send sends a request, and again if that may help. The caller closes the body of the answer, whose status is 2xx. A
// *refusal is an answer with another status.
func (s *Store) send(ctx context.Context, q request) (r *http.Response, err error) {
	for try := range tries {
		if try > 0 {
			// #nosec G404: the pause differs between nodes; it is not secret.
			wait := time.NewTimer(rand.N(pause << (try - 1)))
			select {
			case <-ctx.Done():
				wait.Stop()
				return nil, err
			case <-wait.C:
			}
		}
		if r, err = s.sendOnce(ctx, q); err == nil || !temporary(ctx, err) {
			return r, err
		}
	}
	return nil, err
}

func (s *Store) sendOnce(ctx context.Context, q request) (*http.Response, error) {
	address := url.URL{Scheme: "http", Host: s.config.Host, Path: "/" + s.config.Bucket}
	if s.config.Secure {
		address.Scheme = "https"
	}
	if q.key != "" {
		address.Path += "/" + q.key
	}
	address.RawQuery = strings.ReplaceAll(q.query.Encode(), "+", "%20") // a plus sign is encoded
	r, err := http.NewRequestWithContext(ctx, q.method, address.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, q.header)
	if q.method == http.MethodPut {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	sign(r, s.config, sha256.Sum256(q.body), time.Now().UTC())
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer fetch.Drain(answer)
	var told struct{ Code, Message string }
	_ = xml.NewDecoder(io.LimitReader(answer.Body, maxErrorBytes)).Decode(&told) // an answer to HEAD has no body
	return nil, &refusal{answer.StatusCode, told.Code, told.Message}
}

// temporary reports whether a repetition may succeed.
func temporary(ctx context.Context, err error) bool {
	if refused, is := errors.AsType[*refusal](err); is {
		switch refused.status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return refused.code == "RequestTimeout"
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return ctx.Err() == nil && !untrusted
}

// sign adds the signature of AWS (version 4) to a request without a signature. The path and the query are in canonical
// form: valid keys contain no byte that is encoded, and Encode sorts.
func sign(r *http.Request, c Config, body [sha256.Size]byte, now time.Time) {
	const form, service, signed = "AWS4-HMAC-SHA256", "s3", "host;x-amz-content-sha256;x-amz-date"
	at, sum := now.Format("20060102T150405Z"), hex.EncodeToString(body[:])
	r.Header.Set("X-Amz-Date", at)
	r.Header.Set("X-Amz-Content-Sha256", sum)
	canonical := sha256.Sum256([]byte(strings.Join([]string{r.Method, r.URL.Path, r.URL.RawQuery,
		"host:" + r.URL.Host, "x-amz-content-sha256:" + sum, "x-amz-date:" + at, "", signed, sum}, "\n")))
	scope := strings.Join([]string{at[:8], c.Region, service, "aws4_request"}, "/")
	key := []byte("AWS4" + c.SecretKey)
	for _, part := range append(strings.Split(scope, "/"),
		strings.Join([]string{form, at, scope, hex.EncodeToString(canonical[:])}, "\n")) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%x", form, c.AccessKey,
		scope, signed, key))
}
