package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

const (
	pg          = "CASTELLAN_DATABASE_URL=postgres://u@db/c"
	clusterKeys = "CASTELLAN_CLUSTER_TLS_DIR=/tls"
)

// TestEachFaultIsNamed gives each fault alone and expects exactly it: the key, the source and a part of the reason,
// and never the canary of a secret.
func TestEachFaultIsNamed(t *testing.T) {
	for _, tc := range []struct {
		file string
		env  []string
		want string // key (place): part of the problem
	}{
		{file: "htp: {}", want: "htp (castellan.yaml:1): unknown key; did you mean http?"},
		{file: "http:\n  adr: x", want: "http.adr (castellan.yaml:2): unknown key; did you mean addr?"},
		{file: "http:\n  colour: x", want: "http.colour (castellan.yaml:2): unknown key"},
		{file: "http:\n  <<: {addr: x}", want: "http.<< (castellan.yaml:2): unknown key"},
		{file: "dev: true\ndev: false", want: "dev (castellan.yaml:2): is given twice"},
		{file: "log:\n  level: info\n  level: warn", want: "log.level (castellan.yaml:3): is given twice"},
		{file: "http: 5", want: "http (castellan.yaml:1): want a map of keys"},
		{file: "- dev", want: "castellan.yaml:1: want a map of keys"},
		{env: []string{"CASTELLAN_HTTP_ADRR=x"},
			want: "CASTELLAN_HTTP_ADRR: unknown variable; did you mean CASTELLAN_HTTP_ADDR?"},
		{env: []string{"CASTELLAN_LOG=debug"}, want: "CASTELLAN_LOG: unknown variable"},
		{env: []string{"CASTELLAN_HTTP_SERVICE_HOST=x"}, want: "CASTELLAN_HTTP_SERVICE_HOST: unknown variable"},

		{env: []string{"CASTELLAN_DEV=yes"}, want: `dev (CASTELLAN_DEV): "yes" is neither true nor false`},
		{env: []string{"CASTELLAN_DEV="}, want: `dev (CASTELLAN_DEV): "" is neither`},
		{file: "mfa: {max_open: 1.5}", want: `mfa.max_open (castellan.yaml:1): "1.5" is not a whole number`},
		{file: "mfa: {exec_wait: 10}", want: `mfa.exec_wait (castellan.yaml:1): "10" is not a duration`},
		{file: "mfa: {exec_wait: 10us}", want: "more precise than a millisecond"},
		{file: "http: {addr: [a, b]}", want: "http.addr (castellan.yaml:1): want one value"},
		{file: "http: {cors_origins: {a: b}}", want: "http.cors_origins (castellan.yaml:1): want a list"},
		{file: "mfa: {guarded: [a]}", want: "mfa.guarded (castellan.yaml:1): want a map"},
		{file: "http: {cors_origins: [~]}", want: "an entry without a value"},
		{file: "http: {cors_origins: [[a]]}", want: "nested too deeply"},
		{env: []string{"CASTELLAN_MFA_GUARDED=POST /a"}, want: "mfa.guarded (CASTELLAN_MFA_GUARDED): want name=value pairs"},
		{env: []string{"CASTELLAN_MFA_GUARDED=POST /a=A1,POST  /a=B1"}, want: `"POST /a" is given twice`},
		{env: []string{"CASTELLAN_MFA_GUARDED==A1"}, want: "a name is empty"},
		{env: []string{"CASTELLAN_TENANT_ID=a\nb"}, want: "tenant.id (CASTELLAN_TENANT_ID): contains a control character"},
		{env: []string{"CASTELLAN_MAIL_FROM_NAME=\xff"},
			want: "mail.from_name (CASTELLAN_MAIL_FROM_NAME): is not valid UTF-8"},
		{env: []string{"CASTELLAN_MAIL_USERNAME=u", "CASTELLAN_MAIL_PASSWORD=hunter2\n"},
			want: "mail.password (CASTELLAN_MAIL_PASSWORD): contains a control character"},
		{file: "mail: {username: u, password: !hunter2 x}",
			want: "mail.password (castellan.yaml:1): quote text that starts with !"},
		{file: "mail: {password: &hunter2 }", want: "mail.password (castellan.yaml:1): quote text that starts with !"},

		{env: []string{"CASTELLAN_MFA_MAX_OPEN=0"}, want: "mfa.max_open (CASTELLAN_MFA_MAX_OPEN): 0 is outside 1 to 100"},
		{file: "mfa: {challenge_ttl: 61m}", want: "mfa.challenge_ttl (castellan.yaml:1): 1h1m is outside 1s to 1h"},
		{file: "http: {max_connections_per_ip: -1}",
			want: "http.max_connections_per_ip (castellan.yaml:1): -1 is outside 0 to 1000000"},
		{file: "mfa: {otp_budget_window: 10s}", want: "10s is below 5m, the minimum outside development mode"},
		{env: []string{"CASTELLAN_LOG_LEVEL=loud"},
			want: `log.level (CASTELLAN_LOG_LEVEL): "loud" is not one of debug, info, warn, error`},
		{file: "addressbook: {address_rules: {BSC: emv}}",
			want: `addressbook.address_rules (castellan.yaml:1): "emv" for "BSC" is neither one of bitcoin, evm, ` +
				`solana, tron, xrp nor`},
		{file: "addressbook: {address_rules: {BSC: '^0x'}}", want: `"^0x" for "BSC" is neither`},
		{env: []string{"CASTELLAN_ADDRESSBOOK_ADDRESS_RULES=BSC=evm,LTC=^[LM$"},
			want: `addressbook.address_rules (CASTELLAN_ADDRESSBOOK_ADDRESS_RULES): "^[LM$" for "LTC" is neither`},
		{file: "addressbook: {waiting_time: -1s}",
			want: "addressbook.waiting_time (castellan.yaml:1): -1s is outside 0s to 720h"},
		{file: "sms: {preset: carrier}", want: `sms.preset (castellan.yaml:1): "carrier" is not one of twilio`},

		{file: "http: {addr: localhost}", want: `http.addr (castellan.yaml:1): "localhost" must be host:port`},
		{file: "http: {addr: 'localhost:70000'}", want: "must end in a port"},
		{file: "http: {addr: 'a b:80'}", want: "must start with an IP address or a host name"},
		{env: []string{"CASTELLAN_HTTP_ADDR="}, want: "http.addr (CASTELLAN_HTTP_ADDR)"},
		{env: []string{"CASTELLAN_DEV=true", "CASTELLAN_HTTP_ADDR=0.0.0.0:80"},
			want: `http.addr (CASTELLAN_HTTP_ADDR): "0.0.0.0:80" is not a loopback address, and dev (CASTELLAN_DEV)`},
		{env: []string{"CASTELLAN_DEV_CONTAINER=true"},
			want: "dev_container (CASTELLAN_DEV_CONTAINER): true is accepted only with dev: true"},
		{env: []string{"CASTELLAN_DEV=1", "CASTELLAN_DEV_CONTAINER=true", "CASTELLAN_HTTP_PUBLIC_URL=http://localhost:8080"},
			want: "http.public_url (CASTELLAN_HTTP_PUBLIC_URL): must not be set with dev_container (CASTELLAN_DEV_CONTAINER)"},
		{file: "dev: true\ndev_container: true\nmetrics: {addr: '0.0.0.0:9'}", want: "metrics.addr (castellan.yaml:3)"},
		{env: []string{"CASTELLAN_DEV=1", "CASTELLAN_HTTP_ADDR=:80"}, want: "is not a loopback address"},
		{env: []string{"CASTELLAN_DEV=1", "CASTELLAN_HTTP_ADDR=localhost.example.com:80"}, want: "is not a loopback address"},
		{env: []string{"CASTELLAN_DEV=1", "CASTELLAN_HTTP_ADDR=[::ffff:10.0.0.1]:80"}, want: "is not a loopback address"},
		{file: "dev: true\nmetrics: {addr: '0.0.0.0:9'}", want: "metrics.addr (castellan.yaml:2)"},
		{file: "metrics: {addr: '9000'}", want: "metrics.addr (castellan.yaml:1)"},
		{file: "tracing: {endpoint: 'collector:4318'}",
			want: "tracing.endpoint (castellan.yaml:1): must be http://host or https://host"},
		{env: []string{"CASTELLAN_TRACING_ENDPOINT=https://u:p@collector"},
			want: "tracing.endpoint (CASTELLAN_TRACING_ENDPOINT)"},
		{file: "tracing: {sample_ratio: 1.5}", want: "tracing.sample_ratio (castellan.yaml:1): 1.5 is outside 0 to 1"},
		{file: "tracing: {sample_ratio: all}", want: `tracing.sample_ratio (castellan.yaml:1): "all" is not a number`},
		{file: "tracing: {headers: {'a b': c}}", want: "is not the name of a header"},
		{file: "tracing: {endpoint: 'http://collector', headers: {a: b}}",
			want: "tracing.headers (castellan.yaml:1): must not cross the network in the clear"},
		{file: "metrics: {addr: '127.0.0.1:8080'}", want: "metrics.addr (castellan.yaml:1): must differ from http.addr"},
		{file: "rates: {key_header: 'a b'}", want: "rates.key_header (castellan.yaml:1): is not the name of a header"},
		{env: []string{"CASTELLAN_LIMITS_ENABLED=false"},
			want: "limits.enabled (CASTELLAN_LIMITS_ENABLED): false is accepted only with dev: true"},
		{file: "geo: {cdn_url: 'ftp://cdn.example.com/x'}",
			want: "geo.cdn_url (castellan.yaml:1): must be http://host or https://host"},
		{file: "files: {cdn_url: 'ftp://cdn.example.com/x'}",
			want: "files.cdn_url (castellan.yaml:1): must be http://host or https://host"},
		{file: "files: {s3_url: 'https://s3.test/', s3_access_key: a, s3_secret_key: b}",
			want: "files.s3_url (castellan.yaml:1): must be https://host/bucket"},
		{file: "files: {s3_url: 'https://s3.test/a-b/c', s3_access_key: a, s3_secret_key: b}",
			want: "files.s3_url (castellan.yaml:1): must be https://host/bucket"},
		{file: "files: {s3_url: 'http://s3.test/files', s3_access_key: a, s3_secret_key: b}",
			want: "files.s3_url (castellan.yaml:1): must be https unless its host is loopback"},
		{file: "files: {s3_url: 'https://s3.example.com/files'}",
			want: "files.s3_access_key: must be set with files.s3_url (castellan.yaml:1)"},
		{file: "kyc: {back_type: 1}", want: "kyc.front_type: must differ"},
		{file: "kyc: {identity_url: 'http://127.0.0.1/x'}",
			want: "kyc.identity_url (castellan.yaml:1): must be https://host/path"},
		{file: "accounting: {url: 'https://books.example.com/in'}",
			want: "accounting.secret: must be set if and only if accounting.url"},
		{file: "accounting: {url: 'http://books.example.com/in', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}",
			want: "accounting.url (castellan.yaml:1): must be https://host"},
		{file: "providers: {exchanges: {spot: 'http://x.example'}, accounts: {spot/main: 'k:s'}}",
			want: `providers.exchanges (castellan.yaml:1): "spot" must be https://host`},
		{file: "providers: {exchanges: {spot: 'https://x.example'}}", want: `providers.accounts: has no account at "spot"`},
		{file: "providers: {accounts: {spot/main: 'k:s'}}",
			want: `providers.accounts (castellan.yaml:1): "spot/main" is not exchange/account`},
		{file: "providers: {exchanges: {spot: 'https://x.example'}, accounts: {spot/AllAccounts: 'k:s'}}",
			want: `"spot/AllAccounts" is not exchange/account`},
		{file: "providers: {exchanges: {spot: 'https://x.example'}, accounts: {spot/main: hunter2}}",
			want: `providers.accounts (castellan.yaml:1): "spot/main" must have key:secret`},
		{file: "providers: {exchanges: {spot: 'https://x.example'}, accounts: {spot/main: 'k:s'}, files: {spot: a.json}}",
			want: `providers.files (castellan.yaml:1): "spot" is an exchange too`},
		{file: "providers: {files: {'a/b': a.json}}", want: `providers.files (castellan.yaml:1): "a/b" must consist of`},
		{file: "providers: {key_header: 'X Y'}",
			want: "providers.key_header (castellan.yaml:1): is not the name of a header"},
		{file: "audit: {keep: 24h}", want: "audit.keep (castellan.yaml:1): must be 720h or more"},
		{file: "accounting: {url: 'https://books.example.com/in', secret: 'x'}",
			want: "accounting.secret (castellan.yaml:1): must be whsec_ and base64"},
		{file: "files: {s3_access_key: a}", want: "files.s3_secret_key: must be set if and only if files.s3_access_key"},
		{file: "geo: {allow_private: true}",
			want: "geo.allow_private (castellan.yaml:1): true is accepted only with dev: true"},

		{env: []string{"CASTELLAN_HTTP_PUBLIC_URL=id.example.com"},
			want: "http.public_url (CASTELLAN_HTTP_PUBLIC_URL): must be http://host"},
		{file: "http: {public_url: 'ftp://a'}", want: "http.public_url"},
		{file: "http: {public_url: 'https://u:p@a'}", want: "must not hold a user"},
		{file: "http: {public_url: 'https://a?b'}", want: "must not hold a user, a query"},
		{file: "http: {base_path: auth}", want: "http.base_path (castellan.yaml:1): must look like"},
		{file: "http: {base_path: /a/../b}", want: "http.base_path"},
		{file: "http: {country_header: 'cf country'}", want: "http.country_header"},
		{env: []string{"CASTELLAN_HTTP_TRUSTED_PROXIES=10.0.0.0/8,proxy"},
			want: `http.trusted_proxies (CASTELLAN_HTTP_TRUSTED_PROXIES): "proxy" is neither`},
		{file: "http: {trusted_proxies: ['fe80::1%eth0']}", want: "is neither an IP address"},
		{file: "http: {trusted_proxies: ['::ffff:0.0.0.0/90']}", want: "spans more"},
		{file: "http: {trusted_proxies: [0.0.0.0/0]}",
			want: "http.trusted_proxies (castellan.yaml:1): 0.0.0.0/0 would let every client"},
		{env: []string{"CASTELLAN_HTTP_CORS_ORIGINS=*"},
			want: `http.cors_origins (CASTELLAN_HTTP_CORS_ORIGINS): "*" would let any page`},
		{file: "http: {cors_origins: ['null']}", want: `"null" would let any page`},
		{file: "http: {cors_origins: ['https://a.example/']}", want: "is not an origin"},
		{file: "http: {cors_origins: [a.example]}", want: "is not an origin"},
		{file: "http: {cors_origins: ['https://*.example']}", want: "is not an origin"},

		{env: []string{"CASTELLAN_DATA_DIR= "}, want: "data_dir (CASTELLAN_DATA_DIR): must name a folder"},
		{env: []string{"CASTELLAN_DATABASE_URL=mysql://u:hunter2@h/d"},
			want: "database.url (CASTELLAN_DATABASE_URL): must be sqlite:PATH"},
		{env: []string{"CASTELLAN_DATABASE_URL=host=a password=hunter2"},
			want: "database.url (CASTELLAN_DATABASE_URL): must be sqlite:PATH"},
		{env: []string{"CASTELLAN_DATABASE_URL=postgres://u:hunter2@x@h/d"}, want: "cannot be parsed"},
		{env: []string{"CASTELLAN_DATABASE_URL=postgres://u:12/hunter2@h/d"}, want: "cannot be parsed"},
		{env: []string{"CASTELLAN_DATABASE_URL=postgres://u:1#hunter2@h/d"}, want: "cannot be parsed"},
		{env: []string{"CASTELLAN_DATABASE_URL=postgres://u:hunter2@h:x/d"}, want: "is not a valid URL"},
		{env: []string{"CASTELLAN_DATABASE_URL=postgres://h/d?password=hunter2%"}, want: "parameters that cannot be read"},
		{env: []string{"CASTELLAN_DATABASE_URL=sqlite:"}, want: "has no file"},
		{env: []string{"CASTELLAN_DATABASE_URL=sqlite://x.db"}, want: "without //"},
		{env: []string{"CASTELLAN_DATABASE_URL=sqlite::memory:"}, want: "must name a file"},
		{env: []string{"CASTELLAN_DATABASE_URL=sqlite:x.db?mode=ro"}, want: "must name a file"},
		{file: "tenant: {id: 'a b'}", want: "tenant.id"},
		{file: "mfa: {totp_issuer: 'A: B'}", want: "mfa.totp_issuer"},
		{file: "tokens: {issuer: ''}", want: "tokens.issuer"},
		{file: "firewall: {app_id: ''}", want: "firewall.app_id"},
		{file: "password: {argon2_memory_kib: 8, argon2_parallelism: 2}",
			want: "8 is below 8 for each of password.argon2_parallelism (castellan.yaml:1): at least 16"},
		{file: "password: {min_length: 6}", want: "password.min_length (castellan.yaml:1): 6 is outside 8 to 64"},
		{file: "tokens: {session_ttl: 20m}",
			want: "tokens.session_ttl (castellan.yaml:1): must not be shorter than tokens.x_auth_ttl"},
		{file: "limits: {exempt_cidrs: [10.0.0.0/8, '::/0']}", want: "limits.exempt_cidrs"},
		{file: "limits: {wrong_passwords_day: 5}", want: "limits.wrong_passwords_day"},
		{env: []string{"CASTELLAN_LIMITS_DESTINATION_PER_HOUR=51"},
			want: "limits.destination_per_day: must not be below limits.destination_per_hour " +
				"(CASTELLAN_LIMITS_DESTINATION_PER_HOUR)"},
		{file: "outbox: {retry_min: 2m}", want: "outbox.retry_max"},
		{file: "mail: {timeout: 30s}", want: "outbox.lease: must be longer than mail.timeout (castellan.yaml:1)"},
		{file: "sms: {timeout: 31s}", want: "outbox.lease: must be longer than sms.timeout"},
		{file: "language: {time_zone: Mars/Olympus}",
			want: `language.time_zone (castellan.yaml:1): "Mars/Olympus" is not a time zone`},
		{file: "limits: {country_per_day: {'+90': 5}}", want: `"+90" is not a dialling prefix`},
		{file: "limits: {country_per_day: {90: -1}}", want: "-1 for 90 is outside 0"},

		{file: "mfa: {guarded: {auth/password: A1}}",
			want: `mfa.guarded (castellan.yaml:1): "auth/password" is not an endpoint`},
		{file: "mfa: {guarded: {HEAD /a: A1}}", want: "is not an endpoint"},
		{file: "mfa: {guarded: {'GET /a?b': A1}}", want: "is not an endpoint"},
		{file: "mfa: {four_eyes: [POST /a, auth/password]}",
			want: `mfa.four_eyes (castellan.yaml:1): "auth/password" is not an endpoint`},
		{file: "mfa: {four_eyes_ttl: 25h}", want: "25h is outside 1s to 24h"},
		{file: "mfa: {four_eyes_ttl: 10s}", want: "10s is below 1m"},
		{file: "mfa: {guarded: {GET /a: login}}", want: `"login" is not an action code`},

		{file: "mail: {host: localhost}", want: "mail.from: must be set with mail.host (castellan.yaml:1)"},
		{file: "mail: {host: localhost, from: 'A <a@example.com>'}", want: "is not a bare mail address"},
		{file: "mail: {host: 'smtp.example.com:25', from: a@example.com}", want: "mail.host (castellan.yaml:1)"},
		{file: "mail: {host: smtp.example.com, from: a@example.com, tls: none}",
			want: "mail.tls (castellan.yaml:1): none is accepted only for a loopback host"},
		{file: "mail: {host: localhost, from: a@example.com, tls: none, username: u, password: hunter2}",
			want: "mail.tls (castellan.yaml:1): with none, no password is sent"},
		{env: []string{"CASTELLAN_MAIL_USERNAME=u"},
			want: "mail.password: must be set if and only if mail.username (CASTELLAN_MAIL_USERNAME) is"},
		{env: []string{"CASTELLAN_MAIL_PASSWORD=hunter2"},
			want: "mail.password (CASTELLAN_MAIL_PASSWORD): must be set if and only if mail.username"},
		{file: "mail: {port: 65536}", want: "mail.port (castellan.yaml:1): 65536 is outside 0 to 65535"},

		{file: "sms: {url: gateway, params: {a: b}}", want: "sms.url (castellan.yaml:1): is not a valid https URL"},
		{file: "sms: {url: 'http://gw.example', params: {a: b}}", want: "must be https unless"},
		{file: "sms: {url: 'https://hunter2@gw.example', params: {a: b}}", want: "must not hold a user"},
		{file: "sms: {url: 'https://gw.example'}", want: "sms.params: sms.params or sms.body must say what to send"},
		{file: "sms: {url: 'https://gw.example', params: {a: b}, body: x}", want: "only one of"},
		{file: "sms: {url: 'https://gw.example', params: {a: b}, method: GET, format: json}",
			want: "sms.method (castellan.yaml:1): GET carries"},
		{file: "sms: {url: 'https://gw.example', format: json, body: '{\"to\": {{to}}, \"k\": \"hunter2\"}'}",
			want: "sms.body (castellan.yaml:1): is not JSON"},
		{file: "sms: {headers: {'a b': hunter2}}", want: `sms.headers (castellan.yaml:1): "a b" is not the name`},
		{file: "sms: {success_codes: [500]}", want: "500 is outside 200 to 399"},
		{file: "sms: {success_pattern: '00 ('}", want: "sms.success_pattern (castellan.yaml:1): is not a"},
		{file: "sms: {success_pattern: x, success_field: a, success_values: [b]}",
			want: "only one of sms.success_pattern and sms.success_field"},
		{file: "sms: {success_field: a}", want: "sms.success_values: must be set if and only if"},
		{env: []string{"CASTELLAN_SMS_PASSWORD=hunter2"}, want: "sms.password (CASTELLAN_SMS_PASSWORD)"},
		{env: []string{"CASTELLAN_SMS_PARAMS=k=a,hunter2=b,hunter2=c"},
			want: "sms.params (CASTELLAN_SMS_PARAMS): cannot be read"},
		{file: "sms: {preset: twilio}", want: "sms.preset (castellan.yaml:1): twilio needs"},
		{file: "push: {contact: ops@example.com}",
			want: "push.contact (castellan.yaml:1): \"ops@example.com\" is neither mailto:"},
		{file: "push: {contact: 'mailto:Ops <ops@example.com>'}", want: "is neither mailto:"},
		{file: "push: {contact: 'http://example.com'}", want: "is neither mailto:"},
		{env: []string{"CASTELLAN_PUSH_WEBHOOK_SECRET=hunter2hunter2hunter2hunter2hunter2"},
			want: "push.webhook_secret (CASTELLAN_PUSH_WEBHOOK_SECRET): must be whsec_ and base64"},
		{env: []string{"CASTELLAN_PUSH_WEBHOOK_SECRET=whsec_aHVudGVyMg=="}, want: "of 24 to 64 bytes"},
		{file: "push: {hosts: ['https://push.example']}",
			want: `push.hosts (castellan.yaml:1): "https://push.example" is not a host name`},
		{file: "push: {hosts: ['*']}", want: `push.hosts (castellan.yaml:1): "*" is not a host name`},
		{file: "push: {timeout: 30s}", want: "outbox.lease: must be longer than push.timeout (castellan.yaml:1)"},
		{file: "sms: {preset: twilio, username: u, password: p, sender: s, method: PUT}", want: "sms.method"},
		{file: "sms: {preset: twilio, username: u, password: p, sender: s, params: {a: b}}",
			want: "twilio defines its own form"},

		{file: "http:\n\taddr: x", want: "is not valid YAML: line 2"},
		{file: "mail: {password: *hunter2}", want: "is not valid YAML: text that starts with * or & must be quoted"},
		{file: "dev: false\n---\ndev: false", want: "holds more than one document"},

		// A cluster and Envoy's rate limit service, and their protection against strangers.
		{env: []string{clusterKeys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1", "CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:2"},
			want: "cluster.gossip_addr (CASTELLAN_CLUSTER_GOSSIP_ADDR): a cluster requires PostgreSQL"},
		{env: []string{pg, clusterKeys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1"},
			want: "cluster.actor_addr: must be set with cluster.gossip_addr"},
		{env: []string{pg, clusterKeys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:1"}, want: "cluster.actor_addr (CASTELLAN_CLUSTER_ACTOR_ADDR): must differ"},
		{env: []string{pg, clusterKeys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:0",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:1"}, want: "cluster.gossip_addr (CASTELLAN_CLUSTER_GOSSIP_ADDR)"},
		{env: []string{pg, "CASTELLAN_DEV=true", "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=10.0.0.1:1"},
			want: "cluster.actor_addr (CASTELLAN_CLUSTER_ACTOR_ADDR): outside loopback, a cluster requires cluster.tls_dir"},
		{env: []string{pg, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1", "CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:2"},
			want: "cluster.tls_dir: must be set with cluster.gossip_addr (CASTELLAN_CLUSTER_GOSSIP_ADDR)"},
		{env: []string{pg, "CASTELLAN_CLUSTER_TLS_DIR=/tls",
			"CASTELLAN_CLUSTER_GOSSIP_ADDR=0.0.0.0:1", "CASTELLAN_CLUSTER_ACTOR_ADDR=10.0.0.1:2"},
			want: "must be an address at which other nodes reach this one"},
		{env: []string{pg, "CASTELLAN_CLUSTER_TLS_DIR=/tls",
			"CASTELLAN_CLUSTER_GOSSIP_ADDR=10.0.0.1:1", "CASTELLAN_CLUSTER_ACTOR_ADDR=:2"},
			want: "must be an address at which other nodes reach this one"},
		{env: []string{pg, clusterKeys, "CASTELLAN_CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
			"CASTELLAN_CLUSTER_ACTOR_ADDR=127.0.0.1:2", "CASTELLAN_CLUSTER_JOIN=node-2"},
			want: "cluster.join (CASTELLAN_CLUSTER_JOIN)"},
		{env: []string{"CASTELLAN_LIMITS_RLS_ADDR=10.0.0.1:9000"},
			want: "limits.rls_addr (CASTELLAN_LIMITS_RLS_ADDR): outside loopback, service keys require TLS"},
		{env: []string{"CASTELLAN_LIMITS_RLS_CERT_FILE=c.pem"},
			want: "limits.rls_cert_file (CASTELLAN_LIMITS_RLS_CERT_FILE): must be set with limits.rls_key_file"},
	} {
		_, err := Load(write(t, tc.file), tc.env)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 || !strings.Contains(faults[0].Error(), tc.want) {
			t.Errorf("%q, %q: %v\nwant %s", tc.file, tc.env, err, tc.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("secret in %v", err)
		}
	}
}

// TestAllFaultsAtOnce mixes the layers; a broken value adds no fault of the rules about it.
func TestAllFaultsAtOnce(t *testing.T) {
	_, err := Load(write(t, "dev: maybe\nlimits: {enabled: false}\nmfa: {max_open: 0, colour: red}\n"),
		[]string{"CASTELLAN_HTTP_ADDR=nowhere", "CASTELLAN_TOKENS_X_AUTH_TTL=soon", "CASTELLAN_MAIL_HOTS=x"})
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var keys []string
	for _, f := range faults {
		keys = append(keys, f.Key)
	}
	if got, want := strings.Join(keys, " "), "dev mfa.colour tokens.x_auth_ttl CASTELLAN_MAIL_HOTS mfa.max_open "+
		"http.addr"; got != want {
		t.Errorf("keys = %s\nwant   %s", got, want)
	}
	if text := err.Error(); !strings.HasPrefix(text, "6 faults in the configuration:\n  dev (castellan.yaml:1): ") ||
		strings.Count(text, "\n") != 6 {
		t.Errorf("text = %s", text)
	}
}

func TestUnreadableFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	_, err := Load(missing, []string{"CASTELLAN_DEV=maybe"})
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 2 || !strings.Contains(faults[0].Error(),
		missing+": cannot be read: no such file") || faults[1].Key != "dev" {
		t.Errorf("error = %v", err)
	}
}

// TestValuesInsideRulesAreAccepted holds values just inside the rules.
func TestValuesInsideRulesAreAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"dev on loopback":     "dev: true\nhttp: {addr: '127.9.9.9:0'}\nmetrics: {addr: '[::1]:9'}\nlimits: {enabled: false}",
		"dev in a container":  "dev: true\ndev_container: true\nhttp: {addr: '0.0.0.0:80'}",
		"dev on localhost":    "dev: true\nhttp: {addr: 'localhost:80'}",
		"dev, short windows":  "dev: true\nmfa: {otp_budget_window: 1s}\nlimits: {wrong_password_window: 1s}",
		"production anywhere": "http: {addr: ':443', public_url: 'https://id.example.com/auth', base_path: /auth-service/v1}",
		"bounds": "mfa: {exec_wait: 0s, challenge_ttl: 1h, max_renewals: 0}\npassword: {argon2_memory_kib: " +
			"8, argon2_time: 1}",
		"mail relay":      "mail: {host: '::1', tls: none, from: a@example.com}",
		"twilio":          "sms: {preset: twilio, username: AC1, password: t, sender: '+1555'}",
		"several hosts":   "database: {url: 'postgres://u:p%40@h1:5432,h2:5433/d?target_session_attrs=primary'}",
		"socket":          "database: {url: 'postgresql:///d?host=/run/postgresql'}",
		"absolute sqlite": "database: {url: 'sqlite:/var/lib/c.db'}",
		"slashed sqlite":  "database: {url: 'sqlite:///var/lib/c.db'}",
		"app origin":      "http: {cors_origins: ['capacitor://localhost', 'http://[::1]:3000']}",
		"cluster": "database: {url: 'postgres://h/d'}\ncluster: {gossip_addr: '10.0.0.1:7946', actor_addr: " +
			"'node-1:7947', join: ['node_2:7946'], tls_dir: /tls}",
		"dev cluster": "dev: true\ndatabase: {url: 'postgres://h/d'}\ncluster: {gossip_addr: '127.0.0.1:1', " +
			"actor_addr: '[::1]:2'}",
		"idle cluster keys": "cluster: {actor_addr: '10.0.0.1:7947', tls_dir: /tls}",
	} {
		if _, err := Load(write(t, text), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
