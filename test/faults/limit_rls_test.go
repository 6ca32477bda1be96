//go:build faults

package faults

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// limiting is a cluster whose nodes also serve their metrics and Envoy's rate limit service.
type limiting struct {
	*blackbox.Cluster
	t       *testing.T
	metrics map[*blackbox.Node]string
	envoys  map[*blackbox.Node]*grpc.ClientConn
}

func newLimiting(t *testing.T, c *blackbox.Cluster, nodes int) *limiting {
	t.Helper()
	l := &limiting{c, t, map[*blackbox.Node]string{}, map[*blackbox.Node]*grpc.ClientConn{}}
	for range nodes {
		l.Join()
	}
	return l
}

func (l *limiting) Join() *blackbox.Node {
	t, keys := l.t, filepath.Join(filepath.Dir(l.Dir), "cluster")
	t.Helper()
	metrics, rls := porttest.Free(t), porttest.Free(t)
	n := l.Cluster.Join("METRICS_ADDR="+metrics, "LIMITS_RLS_ADDR="+rls,
		"LIMITS_RLS_CERT_FILE="+filepath.Join(keys, "node.crt"), "LIMITS_RLS_KEY_FILE="+filepath.Join(keys, "node.key"))
	l.metrics[n] = metrics
	conn := storetest.Value(grpc.NewClient(rls, grpc.WithDefaultCallOptions(grpc.ForceCodec(written{})),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))))(t)
	t.Cleanup(func() { conn.Close() })
	l.envoys[n] = conn
	return n
}

// shared counts the decisions of running nodes by their share of a limit, which may admit more than its number.
func (l *limiting) shared(t *testing.T) (sum float64) {
	t.Helper()
	for _, n := range l.Nodes {
		sum += blackbox.Value(blackbox.Scrape(t, l.metrics[n]), "castellan_ratelimit_shared_total")
	}
	return sum
}

// written is a codec for messages that are written already.
type written struct{}

func (written) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (written) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }
func (written) Name() string                    { return "proto" }
func text(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// askAsEnvoy counts an entity under the limit orders of the service shop, as Envoy does.
func (l *limiting) askAsEnvoy(n *blackbox.Node, key, entity string) (allowed bool, err error) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), "service-auth", key),
		time.Minute)
	defer cancel()
	descriptor := text(nil, 1, text(text(nil, 1, []byte("orders")), 2, []byte(entity)))
	var answer []byte
	err = l.envoys[n].Invoke(ctx, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		text(text(nil, 1, []byte("shop")), 2, descriptor), &answer)
	return len(answer) > 1 && answer[0] == 1<<3 && answer[1] == 1, err
}
