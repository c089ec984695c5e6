"""Problems and answers: frozen data, validated once, without any solver."""
