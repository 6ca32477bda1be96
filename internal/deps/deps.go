//go:build deps

// Package deps pins what the tree is about to use.
package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/asynkron/protoactor-go/actor"
	_ "github.com/asynkron/protoactor-go/cluster"
	_ "github.com/asynkron/protoactor-go/remote"
	_ "github.com/chromedp/chromedp"
	_ "github.com/danielgtaylor/huma/v2"
	_ "github.com/emersion/go-smtp"
	_ "github.com/fasthttp/websocket"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/gofiber/contrib/websocket"
	_ "github.com/gofiber/fiber/v2"
	_ "github.com/golang-jwt/jwt/v5"
	_ "github.com/hashicorp/memberlist"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/nyaruka/phonenumbers"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/uptrace/bun"
	_ "github.com/uptrace/bun/dialect/pgdialect"
	_ "github.com/uptrace/bun/dialect/sqlitedialect"
	_ "github.com/valyala/fasthttp"
	_ "github.com/wneessen/go-mail"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/crypto/argon2"
	_ "golang.org/x/text/unicode/norm"
	_ "google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite"
)
