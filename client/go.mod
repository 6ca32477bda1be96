module castellan/client

go 1.26.0

require (
	github.com/gobwas/ws v1.5.0
	github.com/golang-jwt/jwt/v5 v5.3.1
)

require github.com/gobwas/httphead v0.1.0 // indirect
