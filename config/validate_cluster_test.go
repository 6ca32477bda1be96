package config

import (
	"errors"
	"strings"
	"testing"
)

// The requirements of a cluster and of Envoy's rate limit service, and of their protection against strangers.
func TestClusterSettingsAreRequired(t *testing.T) {
	const keys = "CASTELLAN_CLUSTER_TLS_DIR=/tls"
	for _, tc := range []struct {
		name string
		env  []string
		want string
	}{
		{name: "cluster on sqlite", env: []string{keys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:2"},
			want: "cluster.gossip_addr (CASTELLAN_CLUSTER_GOSSIP_ADDR): a cluster requires PostgreSQL"},
		{name: "cluster without actors", env: []string{pg, keys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1"},
			want: "cluster.actor_addr: must be set with cluster.gossip_addr"},
		{name: "cluster same", env: []string{pg, keys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:1"}, want: "cluster.actor_addr (CASTELLAN_CLUSTER_ACTOR_ADDR): must differ"},
		{name: "cluster port", env: []string{pg, keys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:0",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:1"}, want: "cluster.gossip_addr (CASTELLAN_CLUSTER_GOSSIP_ADDR)"},
		{name: "cluster in the clear", env: []string{pg, "CASTELLAN_DEV=true", "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=10.0.0.1:1"},
			want: "cluster.actor_addr (CASTELLAN_CLUSTER_ACTOR_ADDR): outside loopback, a cluster requires cluster.tls_dir"},
		{name: "cluster without keys", env: []string{pg, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:2"},
			want: "cluster.tls_dir: must be set with cluster.gossip_addr (CASTELLAN_CLUSTER_GOSSIP_ADDR)"},
		{name: "cluster everywhere", env: []string{pg, "CASTELLAN_CLUSTER_TLS_DIR=/tls",
			"CASTELLAN_CLUSTER_GOSSIP_ADDR=0.0.0.0:1", "CASTELLAN_CLUSTER_ACTOR_ADDR=10.0.0.1:2"},
			want: "must be an address at which other nodes reach this one"},
		{name: "cluster nowhere", env: []string{pg, "CASTELLAN_CLUSTER_TLS_DIR=/tls",
			"CASTELLAN_CLUSTER_GOSSIP_ADDR=10.0.0.1:1", "CASTELLAN_CLUSTER_ACTOR_ADDR=:2"},
			want: "must be an address at which other nodes reach this one"},
		{name: "cluster join", env: []string{pg, keys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:2", "CASTELLAN_CLUSTER_JOIN=node-2"},
			want: "cluster.join (CASTELLAN_CLUSTER_JOIN)"},
		{name: "rls in the clear", env: []string{"CASTELLAN_LIMITS_RLS_ADDR=10.0.0.1:9000"},
			want: "limits.rls_addr (CASTELLAN_LIMITS_RLS_ADDR): outside loopback, service keys require TLS"},
		{name: "rls without a key", env: []string{"CASTELLAN_LIMITS_RLS_CERT_FILE=c.pem"},
			want: "limits.rls_cert_file (CASTELLAN_LIMITS_RLS_CERT_FILE): must be set with limits.rls_key_file"},
	} {
		_, err := Load(write(t, ""), tc.env)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 || !strings.Contains(faults[0].Error(), tc.want) {
			t.Errorf("%s: %v\nwant %s", tc.name, err, tc.want)
		}
	}
}
