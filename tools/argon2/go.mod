// The generator of the vector code of domain/account/password/argon2id. It is a module of its own, because avo works only with
// versions of golang.org/x/tools that it does not choose itself.
module castellan/tools/argon2

go 1.26.8

require github.com/mmcloughlin/avo v0.5.0

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
)
