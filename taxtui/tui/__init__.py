"""The terminal user interface. It measures nothing: it starts ``taxtui run`` and follows the recording."""
